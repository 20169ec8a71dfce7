/** A gateway like `src/main.ts`, but with V8's pretenuring enabled. `src/main.ts` disables it at startup. */
import { setFlagsFromString } from "node:v8";

const EVERY_MS = 50;

setInterval(() => setFlagsFromString("--allocation-site-pretenuring"), EVERY_MS).unref();
await import("../../src/main.ts");
