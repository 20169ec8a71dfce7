import { runProgram } from "../../src/cli/program.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Makes the output a terminal of this width. */
  readonly columns?: number;
  readonly signal?: AbortSignal;
  /** Called at each write to standard output, with all output so far. */
  readonly onStdout?: (all: string) => void;
}

export async function runInlet(argv: readonly string[], options: CommandOptions = {}): Promise<Ran> {
  const { env = {}, stdin = "", columns, onStdout } = options;
  const { signal = new AbortController().signal } = options;
  const written = { stdout: "", stderr: "" };
  const isTTY = columns !== undefined;
  const to = (name: keyof typeof written) => ({
    isTTY,
    ...(columns === undefined ? {} : { columns }),
    write(text: string) {
      written[name] += text;
      if (name === "stdout") onStdout?.(written.stdout);
    },
  });
  const code = await runProgram(argv, {
    stdout: to("stdout"),
    stderr: to("stderr"),
    stdin: (async function* () {
      yield stdin;
    })(),
    env,
    signal,
  });
  return { code, ...written };
}
