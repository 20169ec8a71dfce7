import type { ExitCode } from "./exit.ts";
import type { Io } from "./io.ts";

/** The streams and environment that a command uses, and the exit code that it sets. */
export interface CommandContext {
  readonly io: Io;
  exitCode: ExitCode;
}
