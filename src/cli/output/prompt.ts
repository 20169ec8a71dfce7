import { createInterface } from "node:readline/promises";
import { PassThrough } from "node:stream";
import { CommandError, EXIT } from "../exit.ts";
import type { Io } from "../io.ts";

/**
 * Reads a secret from the first line of standard input without displaying it.
 *
 * @throws CommandError at Ctrl-C
 */
export async function readSecret({ stdin, stderr, signal }: Io, question: string): Promise<string> {
  if (!stdin.isTTY) return (await readAll(stdin)).split(/\r?\n/, 1)[0] ?? "";
  stderr.write(question);
  // Discard the echo of `readline`, so that the secret is not displayed.
  const lines = createInterface({
    input: stdin as unknown as NodeJS.ReadableStream,
    output: new PassThrough(),
    terminal: true,
  });
  try {
    return await lines.question("", { signal });
  } catch (error) {
    throw new CommandError("Interrupted.", { exitCode: EXIT.interrupted, cause: error });
  } finally {
    lines.close();
    stderr.write("\n");
  }
}

/** Asks the user for confirmation. Returns false if standard input is not a terminal. */
export async function confirm({ stdin, stderr, signal }: Io, question: string): Promise<boolean> {
  if (!stdin.isTTY) return false;
  stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: stdin as unknown as NodeJS.ReadableStream });
  try {
    return /^y(es)?$/i.test((await lines.question("", { signal })).trim());
  } finally {
    lines.close();
  }
}

export async function readAll(stdin: Io["stdin"]): Promise<string> {
  return (await readBytes(stdin)).toString();
}

export async function readBytes(stdin: Io["stdin"]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
