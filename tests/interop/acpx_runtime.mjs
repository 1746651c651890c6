// Sessions of acpx/runtime, the library that OpenClaw embeds, made as OpenClaw makes them.
// Prints one JSON line for each step. The one argument is JSON:
// {modules, command, env, cwd, state, prompts: {whole, asking, question, endless}, resume?}.
// With `resume`, the ids of the sessions of an earlier process, the conversations go on.
import { createRequire } from "node:module";
import { setTimeout } from "node:timers/promises";

const { modules, command, env, cwd, state, prompts, resume } = JSON.parse(process.argv[2]);
const acpx = await import(createRequire(modules).resolve("acpx/runtime"));

const agent = "shared";
const exits = [];
const runtime = new acpx.AcpxRuntime({
  cwd,
  sessionStore: acpx.createFileSessionStore({ stateDir: state }),
  agentRegistry: acpx.createAgentRegistry({ overrides: { [agent]: command } }),
  agentProcessEnv: env,
  permissionMode: "approve-reads",
  nonInteractivePermissions: "fail",
  probeAgent: agent,
  timeoutMs: 30_000,
  elicitationModes: ["form"],
  processLifecycle: {
    onExit({ scope, exitCode, signal }) {
      exits.push({ kind: scope.kind, exitCode, signal });
    },
  },
});

function print(step, shown) {
  process.stdout.write(`${JSON.stringify({ step, ...shown })}\n`);
}

const session = (sessionKey, mode, more) =>
  runtime.ensureSession({ sessionKey, agent, mode, cwd, ...more });

let turns = 0;

// A turn; `each` sees every event while it runs.
async function turn(handle, text, { outcome, each = () => {} } = {}) {
  const forms = [];
  const started = runtime.startTurn({
    handle,
    text,
    mode: "prompt",
    requestId: `turn-${++turns}`,
    timeoutMs: 0,
    onElicitation: async (form) => {
      forms.push(form);
      const fields = Object.entries(form.requestedSchema.properties).filter(([, one]) => one.oneOf);
      const content = Object.fromEntries(fields.map(([key, one]) => [key, one.oneOf[0].const]));
      return { action: "accept", content };
    },
    onPermissionRequest: outcome && (async () => ({ outcome })),
  });
  const events = [];
  for await (const event of started.events) {
    events.push(event);
    await each(event, started);
  }
  return { events, forms, result: await started.result };
}

// The choices as the runtime has them, once it was told of the mode: a set of the mode has an
// empty answer, and the list of the choices comes in an update.
async function status(handle, mode) {
  for (let tries = 0; ; tries++) {
    const { models, details } = await runtime.getStatus({ handle });
    const options = details.configOptions.map(({ id, currentValue }) => [id, currentValue]);
    const shown = { model: models.currentModelId, options: Object.fromEntries(options) };
    if (shown.options.mode === mode || tries === 100) return shown;
    await setTimeout(20);
  }
}

async function chat() {
  const handle = await session("chat", "persistent", { sessionOptions: { model: "fake/fake-2" } });
  const { configOptionKeys } = await runtime.getCapabilities({ handle });
  print("chat", { id: handle.backendSessionId, configOptionKeys });
  await runtime.setConfigOption({ handle, key: "effort", value: "high" });
  await runtime.setMode({ handle, mode: "reviewer" });
  print("chosen", await status(handle, "reviewer"));
  print("turn", await turn(handle, prompts.whole, { outcome: "allow_once" }));
  print("spent", (await runtime.getStatus({ handle })).usage);
  const cancel = async (event, started) => {
    if (event.type === "text_delta") await started.cancel();
  };
  print("cancelled", await turn(handle, prompts.endless, { each: cancel }));
}

async function once() {
  const handle = await session("once", "oneshot", { sessionOptions: { model: "fake/fake-1" } });
  print("once", { id: handle.backendSessionId });
  print("refused", await turn(handle, prompts.asking, { outcome: "reject_once" }));
  await runtime.close({ handle, reason: "done" });
}

async function chatAgain() {
  const handle = await session("chat", "persistent");
  print("chat", { id: handle.backendSessionId });
  print("turn", await turn(handle, prompts.whole, { outcome: "allow_once" }));
  print("chosen", await status(handle, "reviewer"));
  await runtime.close({ handle, reason: "reset", discardPersistentState: true });
}

async function onceAgain() {
  const handle = await session("once again", "oneshot", { resumeSessionId: resume });
  print("once", { id: handle.backendSessionId });
  print("resumed", await turn(handle, prompts.asking, { outcome: "allow_once" }));
}

async function question() {
  const handle = await session("question", "oneshot");
  print("answered", await turn(handle, prompts.question));
}

async function gone() {
  const nothing = session("gone", "persistent", { resumeSessionId: "ses_gone" });
  const { code, message } = await nothing.catch((error) => error);
  print("gone", { code, message });
}

if (resume) {
  await Promise.all([chatAgain(), onceAgain(), question(), gone()]);
} else {
  await runtime.probeAvailability();
  const options = { agentCommand: command, agentProcessEnv: env, cwd };
  print("probe", { healthy: runtime.isHealthy(), ...(await acpx.inspectAgentModels(options)) });
  await Promise.all([chat(), once()]);
}
await runtime.shutdown();
print("exits", { exits });
