// npm `@modelcontextprotocol/client` 2.x: both eras, over HTTP and stdio.

import { command, era, headers, isHttp, load, run, target } from './steps.mjs';

const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const asked = [];
const mode = era === 'modern' ? 'auto' : 'legacy';
const capabilities = { elicitation: { form: {} } };
const client = new Client(
    { name: 'npm-client', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode } },
);
client.setRequestHandler('elicitation/create', async request => {
    asked.push(request.params.message);
    return { action: 'accept', content: { send: true } };
});
client.withProgress = onprogress => [{ onprogress }];
await client.connect(
    isHttp
        ? new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } })
        : new StdioClientTransport(command),
);
await run(client, asked, client.getNegotiatedProtocolVersion());
