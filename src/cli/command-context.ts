import type { ExitCode } from "./exit.ts";
import type { Io } from "./io.ts";

/** What a command works with, and what it leaves behind. */
export interface CommandContext {
  readonly io: Io;
  exitCode: ExitCode;
}
