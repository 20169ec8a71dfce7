/**
 * How long compiling GitHub's schemas, and checking against their union, holds up the event loop:
 * `npm run bench:schemas`. No turn should take 50 ms; other processes of the machine add theirs to the wall time.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { EVENT_NAMES, eventSchema, examples, unionSchema } from "../lib/json-schema/github.ts";
import { until } from "../support/until.ts";

const ASKER = { lane: "a" };

const { signal } = new AbortController();

interface Stall {
  /** The longest that the event loop did not turn, in milliseconds: what a request feels. */
  readonly wallMs: number;
  /** The most processor time that this thread took between two turns: our part of it, whatever else the machine does. */
  readonly cpuMs: number;
}

async function longestStall(work: () => unknown): Promise<Stall> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  // The histogram counts from its first tick on, and a delay with the tick that ends it.
  await until(() => delay.count > 0, { everyMs: 1 });
  let cpuMs = 0;
  let last = process.threadCpuUsage();
  const sampler = setInterval(() => {
    const now = process.threadCpuUsage();
    cpuMs = Math.max(cpuMs, (now.user + now.system - last.user - last.system) / 1000);
    last = now;
  }, 1);
  await work();
  const ticks = delay.count;
  await until(() => delay.count > ticks, { everyMs: 1 });
  clearInterval(sampler);
  delay.disable();
  return { wallMs: delay.max / 1e6, cpuMs };
}

async function measure(name: string, work: () => unknown): Promise<void> {
  const startedMs = performance.now();
  const { wallMs, cpuMs } = await longestStall(work);
  const tookMs = performance.now() - startedMs;
  console.log(
    `${name.padEnd(28)} ${tookMs.toFixed(0).padStart(6)} ms, longest stall ${wallMs.toFixed(1)} ms, of this thread's own ${cpuMs.toFixed(1)} ms`,
  );
}

await measure("a stall of 80 ms, as proof", () => {
  for (const end = performance.now() + 80; performance.now() < end; );
});

for (const way of ["one after the other", "all at once"]) {
  await using compiler = startSchemaCompiler();
  const schemas = EVENT_NAMES.map(eventSchema);
  const compile = (schema: Record<string, unknown>) => compiler.compile(schema, { signal, lane: "a" });
  await measure(`${schemas.length} schemas, ${way}`, async () => {
    if (way === "all at once") await Promise.all(schemas.map(compile));
    else for (const schema of schemas) await compile(schema);
  });
}

{
  await using compiler = startSchemaCompiler({ maxCheckCpuMs: 20_000 });
  const schema = unionSchema();
  await measure("the union, 20 examples", async () => {
    const compiled = await compiler.compile(schema, { signal, lane: "a" });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    for (const { payload } of examples().slice(0, 20)) await compiled.value.validate(payload, ASKER);
  });
}
