import type { ExitCode } from "./exit.ts";
import type { Io } from "./io.ts";

/** Streams and environment of a command, and the exit code that it sets. */
export interface CommandContext {
  readonly io: Io;
  exitCode: ExitCode;
}
