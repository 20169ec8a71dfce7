import type { ExitCode } from "./exit.ts";
import type { Io } from "./io.ts";

/** Input and output streams and environment of a command, and the exit code that the command sets. */
export interface CommandContext {
  readonly io: Io;
  exitCode: ExitCode;
}
