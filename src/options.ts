import { parseArgs } from "node:util";
import type { Finding } from "./lib/errors.ts";
import { err, ok, type Result } from "./lib/result.ts";

export type Options = ReturnType<typeof parse>;

/** @param argv without node and script */
export function parseOptions(argv: readonly string[]): Result<Options, readonly Finding[]> {
  try {
    return ok(parse(argv));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return err([{ path: "arguments", message: `${message.split(". ")[0]} (see --help)` }]);
  }
}

function parse(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      config: { type: "string" },
      apply: { type: "string" },
      plan: { type: "boolean" },
      "rotate-master-key": { type: "boolean" },
      "revoke-key": { type: "string" },
      "seal-addresses": { type: "boolean" },
      help: { type: "boolean", short: "h" },
      version: { type: "boolean", short: "v" },
    },
  });
  return values;
}
