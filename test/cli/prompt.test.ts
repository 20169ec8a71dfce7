import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { EXIT } from "../../src/cli/exit.ts";
import { readSecret } from "../../src/cli/output/prompt.ts";

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

it("the prompt does not echo a typed secret", async () => {
  expect(await type("s3cret\r")).toEqual({ secret: "s3cret", shown: "Secret: \n" });
});

it("the prompt for a secret interrupts the command on Ctrl-C", async () => {
  expect((await type("s3c\u0003")).secret).toMatchObject({ exitCode: EXIT.interrupted });
});
