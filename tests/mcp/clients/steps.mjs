// The steps of both npm clients, which differ in their imports and in how they take requests.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import process from 'node:process';

const require = createRequire(`${process.env.PACKAGES}/package.json`);

/** A module of the installed packages. */
export const load = name => import(pathToFileURL(require.resolve(name)));

export const target = process.argv.slice(3);
export const era = process.argv[2];
export const isHttp = target[0].startsWith('http');
export const headers = { Authorization: `Bearer ${process.env.RIALTO_KEY}` };
export const command = { command: target[0], args: target.slice(1), env: process.env };

/** Every step; `client` is connected, `asked` has the questions that it was asked. */
export async function run(client, asked, version) {
    const seen = { version, instructions: client.getInstructions() };
    seen.tools = (await client.listTools()).tools.map(tool => tool.name);
    const progress = [];
    const onprogress = ({ progress: done }) => progress.push(done);
    const call = (name, args, options) =>
        client.callTool({ name, arguments: args }, ...(options ?? []));
    const hire = { skill: 'count_words', input: { text: 'one two three' }, budget: '0.10' };
    const hired = await call('hire', hire, client.withProgress(onprogress));
    Object.assign(seen, { job: hired.structuredContent, text: hired.content[0].text, progress });
    const refused = await call('hire', { ...hire, budget: '0.01' });
    seen.error = { is_error: refused.isError, text: refused.content[0].text };
    await call('no_such_tool', {}).catch(error => (seen.unknown_tool = error.code));
    const me = await client.readResource({ uri: 'rialto://me' });
    seen.resource = JSON.parse(me.contents[0].text);
    seen.resources = (await client.listResources()).resources.map(resource => resource.uri);
    const job = 'rialto://jobs/00000000-0000-4000-8000-000000000000';
    await client.readResource({ uri: job }).catch(error => (seen.unknown_resource = error.code));
    const asks = { name: 'hire', arguments: { task: 'count my words', budget: '0.10' } };
    seen.prompt = (await client.getPrompt(asks)).messages[0].content.text;
    const ref = { type: 'ref/prompt', name: 'hire' };
    const completed = await client.complete({ ref, argument: { name: 'skill', value: 'count_' } });
    seen.completion = completed.completion.values;
    const send = { to: 'receiver', amount: '0.25' };
    let sent = (await call('send_credits', send)).structuredContent;
    if (!sent.moved) {
        seen.code = sent.confirm;
        sent = (await call('send_credits', { ...send, confirm: sent.confirm })).structuredContent;
    }
    Object.assign(seen, { asked, sent });
    await client.close();
    console.log(JSON.stringify(seen));
}
