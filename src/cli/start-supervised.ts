import type { Config, Role } from "../config/schema.ts";
import { startGateway } from "../gateway.ts";
import { endPretenuring, releaseStartupMemory } from "../lib/heap.ts";
import { putPoolBehindOtherThreads } from "../lib/thread-priority.ts";
import { untilAborted } from "../lib/wait.ts";
import { joinSupervisor } from "../supervisor/member.ts";
import type { Work } from "../supervisor/messages.ts";
import { EXIT, type ExitCode } from "./exit.ts";
import { openLog, print, printStartFailure } from "./process.ts";
import type { StartOptions } from "./start-options.ts";

/** Runs one of the processes of a supervisor until the supervisor stops it, and returns the exit code. */
export async function startSupervised(
  settings: Config,
  { env, timing }: Pick<StartOptions, "env" | "timing">,
): Promise<ExitCode> {
  endPretenuring();
  const { start, machine, signal, beforeClosing, ready, leave } = await joinSupervisor();
  const config = { ...settings, roles: selectRoles(settings.roles, start.work) };
  const log = (await openLog(config, process.stdout)).child({ process: start.process });
  let started = false;
  try {
    await using gateway = await startGateway(config, {
      log,
      signal,
      beforeReady: releaseStartupMemory,
      beforeClosing,
      machine,
      ...timing,
    });
    started = true;
    await putPoolBehindOtherThreads();
    ready(() => gateway.greet(print));
    await untilAborted(signal);
  } catch (error) {
    if (!signal.aborted) {
      if (!started) printStartFailure(error, env);
      log.fatal({ event: "gateway.failed", err: error }, "gateway failed");
      await leave();
      return EXIT.failed;
    }
    if (error !== signal.reason) log.warn({ event: "gateway.stopped", err: error }, "stopped with an error");
  }
  await leave();
  return EXIT.done;
}

const BACKGROUND_ROLES: readonly Role[] = ["sources", "delivery"];

const selectRoles = (roles: readonly Role[], work: Work): readonly Role[] =>
  work === "all"
    ? roles
    : roles.filter((role) => BACKGROUND_ROLES.includes(role) === (work === "background"));
