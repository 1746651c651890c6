// A conversation held by the client of the TypeScript SDK. Prints one JSON line for each step.
// The one argument is JSON:
// {modules, command, env, cwd, prompts: {whole, question, endless, asking}}.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { TransformStream } from "node:stream/web";

const { modules, command, env, cwd, prompts } = JSON.parse(process.argv[2]);
const sdk = await import(createRequire(modules).resolve("@agentclientprotocol/sdk"));
const { agent: ask } = sdk.methods;

const updates = [];
const asks = [];
const forms = [];
const salvaged = [];
let came = () => {};
let undecided = false;

function print(step, shown) {
  process.stdout.write(`${JSON.stringify({ step, ...shown })}\n`);
}

// What the SDK hands over, beside what was on the wire: it repairs bad fields without a word.
function tapped(stream, seen) {
  const tap = new TransformStream({
    transform(message, controller) {
      seen.push(structuredClone(message));
      controller.enqueue(message);
    },
  });
  return { writable: stream.writable, readable: stream.readable.pipeThrough(tap) };
}

function compare(method, params, wire) {
  const sent = wire.find((message) => message.method === method && !message.compared);
  sent.compared = true;
  try {
    assert.deepEqual(JSON.parse(JSON.stringify(params)), sent.params);
  } catch (error) {
    salvaged.push(`${method}: ${error.message}`);
  }
}

async function until(happened) {
  while (!happened()) await new Promise((resolve) => (came = resolve));
}

const saw = (words) =>
  until(() => updates.map((update) => update.content?.text ?? "").join("").includes(words));

const [file, ...args] = command;
const agent = spawn(file, args, { env, stdio: ["pipe", "pipe", "inherit"] });
const ended = once(agent, "exit");
const wire = [];
const stream = sdk.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const app = sdk
  .client({ name: "interop" })
  .onNotification(sdk.methods.client.session.update, ({ params }) => {
    compare("session/update", params, wire);
    updates.push(params.update);
    came();
  })
  .onRequest(sdk.methods.client.session.requestPermission, ({ params, signal }) => {
    compare("session/request_permission", params, wire);
    asks.push({ ...params, signal });
    came();
    if (undecided) return once(signal, "abort").then(() => ({ outcome: { outcome: "cancelled" } }));
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(sdk.methods.client.elicitation.create, ({ params }) => {
    compare("elicitation/create", params, wire);
    forms.push(params);
    const fields = Object.entries(params.requestedSchema.properties).filter(([, one]) => one.oneOf);
    const content = Object.fromEntries(fields.map(([key, one]) => [key, one.oneOf[0].const]));
    return { action: "accept", content };
  });

await app.connectWith(tapped(stream, wire), async (peer) => {
  const step = async (name, method, params) => print(name, await peer.request(method, params));

  await step("initialize", ask.initialize, {
    protocolVersion: sdk.PROTOCOL_VERSION,
    clientCapabilities: { elicitation: { form: {} } },
    clientInfo: { name: "interop", version: "1" },
  });
  const opened = await peer.request(ask.session.new, { cwd, mcpServers: [] });
  print("new", opened);
  const { sessionId } = opened;
  const text = (words) => ({ sessionId, prompt: [{ type: "text", text: words }] });

  await step("mode", ask.session.setMode, { sessionId, modeId: "reviewer" });
  for (const [configId, value] of [["model", "fake/fake-2"], ["effort", "high"]])
    await step(configId, ask.session.setConfigOption, { sessionId, configId, value });

  const answer = await peer.request(ask.session.prompt, text(prompts.whole));
  print("prompt", { ...answer, updates: updates.splice(0), asks });

  const answered = await peer.request(ask.session.prompt, text(prompts.question));
  print("question", { ...answered, updates: updates.splice(0), forms });

  const running = peer.request(ask.session.prompt, text(prompts.endless));
  await saw("w1 ");
  await peer.notify(ask.session.cancel, { sessionId });
  print("cancel", await running);

  const withdrawn = new AbortController();
  updates.length = 0;
  const aborted = peer.request(ask.session.prompt, text(prompts.endless), {
    cancellationSignal: withdrawn.signal,
  });
  await saw("w1 ");
  withdrawn.abort();
  print("abort", await aborted);

  undecided = true;
  asks.length = 0;
  const asking = peer.request(ask.session.prompt, text(prompts.asking));
  await until(() => asks.length > 0);
  await peer.notify(ask.session.cancel, { sessionId });
  print("withdrawn", { ...(await asking), aborted: asks[0].signal.aborted });

  await step("close", ask.session.close, { sessionId });
  await step("resume", ask.session.resume, { sessionId, cwd });
  await step("close again", ask.session.close, { sessionId });
  updates.length = 0;
  const loaded = await peer.request(ask.session.load, { sessionId, cwd, mcpServers: [] });
  print("load", { ...loaded, updates: updates.splice(0) });
  const fork = await peer.request("session/fork", { sessionId, cwd, mcpServers: [] });
  print("fork", fork);
  await step("list", ask.session.list, { cwd });
  for (const name of ["delete", "delete again"])
    await step(name, ask.session.delete, { sessionId: fork.sessionId });
  await step("list again", ask.session.list, { cwd });
  print("salvaged", { salvaged });
});

agent.stdin.end();
print("exit", { code: (await ended)[0] });
