/** Exit codes, documented in docs/command-line.md. A command that a signal ended exits with 128 plus the signal's number. */
export const EXIT = {
  done: 0,
  failed: 1,
  wrongSettings: 2,
  /** `inlet plan` found changes. */
  differs: 2,
  dataDirInUse: 3,
  unavailable: 4,
  notAllowed: 5,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Thrown to end a command with an exit code and a message for the user. The message may contain untrusted text. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, options: { readonly exitCode?: ExitCode; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? EXIT.failed;
  }
}

export const usageError = (message: string): CommandError =>
  new CommandError(message, { exitCode: EXIT.wrongSettings });
