/** Exit codes; docs/command-line.md says them all. 128 + the signal's number: cut off by a signal. */
export const EXIT = {
  done: 0,
  failed: 1,
  wrongSettings: 2,
  /** Of `plan`. */
  differs: 2,
  dataDirInUse: 3,
  unavailable: 4,
  notAllowed: 5,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command. The message is for the person who called it, and may hold what strangers wrote. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, options: { readonly exitCode?: ExitCode; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? EXIT.failed;
  }
}

/** What was typed does not fit. */
export const wrongUse = (message: string): CommandError =>
  new CommandError(message, { exitCode: EXIT.wrongSettings });
