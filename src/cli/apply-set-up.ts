import { readFile } from "node:fs/promises";
import { channelKinds } from "../channels/kinds.ts";
import type { SettingsDeps } from "../channels/settings.ts";
import type { Config } from "../config.ts";
import { openDatabase } from "../data/database.ts";
import { migrate } from "../data/migrate.ts";
import { openMasterKeyring } from "../gateway/master-keys.ts";
import { openDatabaseStore } from "../gateway/stores.ts";
import { checkDefinitions } from "../ingest/check-definitions.ts";
import type { Finding } from "../lib/errors.ts";
import { startSchemaCompiler } from "../lib/json-schema/compiler.ts";
import { err, type Result } from "../lib/result.ts";
import { readPresets } from "../verify/presets.ts";
import { EXIT } from "./exit.ts";
import { type CommandRun, runToExit } from "./process.ts";
import { type ApplyDeps, applySetUp, planSetUp } from "./setup/apply.ts";
import { checkSetUp, type WantedOrganization } from "./setup/check.ts";
import type { Variables } from "./setup/environment.ts";
import { parseSetUp } from "./setup/file.ts";
import { isChange, renderFindings, renderSteps } from "./setup/plan.ts";

/** `apply` and `plan`. Answers the exit code. */
export async function applySetUpFile(
  command: Pick<SetUpOptions, "file" | "planOnly" | "env"> & {
    readonly config: Config;
    /** A plan that differs is `EXIT.differs`, and a wrong file another code. */
    readonly tellsDifference: boolean;
  },
): Promise<number> {
  return runToExit(command.config, "Inlet does not apply this", async (given) => {
    const complain = (text: string): void => void process.stderr.write(text);
    const end = await runSetUp(command.config, { ...command, ...given, complain });
    if (end === "refused") return command.tellsDifference ? EXIT.failed : EXIT.wrongSettings;
    return end === "differs" && command.tellsDifference ? EXIT.differs : EXIT.done;
  });
}

export interface SetUpOptions extends CommandRun {
  readonly file: string;
  /** Says what would be done, and does nothing. */
  readonly planOnly: boolean;
  readonly env: Variables;
  readonly complain: (text: string) => void;
}

/**
 * Brings the database to what a file declares, and never deletes what it does not declare. The whole file is checked before
 * anything is opened, and the whole plan before anything is written. Gateways that run on the database have it in force within
 * two seconds.
 *
 * `differs`: of a plan, that applying it would change something. `refused`: the file is wrong, or does not fit what there is; nothing
 * was changed.
 *
 * @throws DataDirInUseError where a gateway runs on servers of its own; what a start throws
 */
export async function runSetUp(
  config: Config,
  options: SetUpOptions,
): Promise<"done" | "differs" | "refused"> {
  const { file, env, log, signal, print, complain } = options;
  const refuse = (findings: readonly Finding[]): "refused" => {
    complain(`Nothing is changed: ${file} is not right.\n${renderFindings(findings)}`);
    return "refused";
  };
  await using opening = new AsyncDisposableStack();
  const schemas = opening.use(startSchemaCompiler());
  const settings: SettingsDeps = {
    channelKinds,
    presets: readPresets(),
    checkDefinitions: (source) => checkDefinitions(schemas, source, signal),
  };
  const wanted = await readSetUp(settings, file, env);
  if (!wanted.ok) return refuse(wanted.error);

  const store = opening.use(await openDatabaseStore(config, { log, signal }));
  const { db } = opening.use(openDatabase({ connection: store.database }));
  await migrate({ connection: store.database, log });
  const clock = Date.now;
  const keyring = await openMasterKeyring(db, store.keys, clock);
  const deps: ApplyDeps = { ...settings, db, keyring, clock, apiKey: config.apiKey };

  const plan = await planSetUp(deps, wanted.value);
  if (plan.conflicts.length > 0) return refuse(plan.conflicts);
  await print(`${options.planOnly ? "Would do" : "To do"}:\n${renderSteps(plan.steps)}`);
  if (options.planOnly) return plan.steps.some(isChange) ? "differs" : "done";

  const { conflicts, steps } = await applySetUp(deps, wanted.value, (organization, token) =>
    print(keyLine(organization, token)),
  );
  if (conflicts.length > 0) {
    throw new Error(`others changed the same meanwhile; apply it again: ${renderFindings(conflicts)}`);
  }
  await print(`Done: ${steps.filter(isChange).length} changed.\n`);
  return "done";
}

const keyLine = (organization: string, token: string): string =>
  `API key of the organization ${organization}, shown this once: ${token}\n`;

async function readSetUp(
  settings: SettingsDeps,
  file: string,
  env: Variables,
): Promise<Result<readonly WantedOrganization[], readonly Finding[]>> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => error);
  if (typeof text !== "string") return err([{ path: "", message: `cannot be read (${text.code})` }]);
  const declared = parseSetUp(text);
  return declared.ok ? checkSetUp({ ...settings, env }, declared.value) : declared;
}
