/**
 * Measures how long the event loop is blocked while GitHub's schemas are compiled and values are checked against their union. No iteration
 * should take 50 ms. Other processes on the machine add to the wall time.
 *
 * usage: npm run bench:schemas
 */
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { EVENT_NAMES, eventSchema, examples, unionSchema } from "../lib/json-schema/github.ts";
import { measure, measureProof } from "./stall.ts";

const ASKER = { lane: "a" };

const { signal } = new AbortController();

await measureProof();

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
