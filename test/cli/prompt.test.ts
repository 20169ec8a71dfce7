import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { EXIT } from "../../src/cli/exit.ts";
import { readSecret } from "../../src/cli/output/prompt.ts";

/** Types at the secret prompt of a terminal. */
async function type(keys: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {} });
  let shown = "";
  const out = { write: (text: string) => (shown += text) };
  const { signal } = new AbortController();
  const asking = readSecret({ stdin, stdout: out, stderr: out, env: {}, signal }, "Secret: ");
  stdin.write(keys);
  const secret = await asking.catch((error: unknown) => error);
  return { secret, shown };
}

it("a typed secret is not echoed", async () => {
  expect(await type("s3cret\r")).toEqual({ secret: "s3cret", shown: "Secret: \n" });
});

it("Ctrl-C instead of a secret interrupts the command", async () => {
  expect((await type("s3c\u0003")).secret).toMatchObject({ exitCode: EXIT.interrupted });
});
