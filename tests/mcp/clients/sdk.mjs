// npm `@modelcontextprotocol/sdk` 1.x: the old era, over HTTP and stdio.

import { command, headers, isHttp, load, run, target } from './steps.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');

const asked = [];
const capabilities = { elicitation: {} };
const client = new Client({ name: 'npm-sdk', version: '1.0.0' }, { capabilities });
client.setRequestHandler(ElicitRequestSchema, async request => {
    asked.push(request.params.message);
    return { action: 'accept', content: { send: true } };
});
// The second argument of a call is the schema of its result.
client.withProgress = onprogress => [undefined, { onprogress }];
const transport = isHttp
    ? new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } })
    : new StdioClientTransport(command);
// The version is told to the transport alone.
let version;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = agreed => {
    version = agreed;
    tell?.(agreed);
};
await client.connect(transport);
await run(client, asked, version);
