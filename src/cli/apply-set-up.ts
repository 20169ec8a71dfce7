import { readFile } from "node:fs/promises";
import type { CheckChannelDeps } from "../channels/check-channel.ts";
import { channelKinds } from "../channels/kinds.ts";
import type { Config } from "../config/schema.ts";
import { openDatabase, type Queryable } from "../data/database.ts";
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

/** Runs `inlet apply` or `inlet plan` on a config file, and returns the exit code. */
export async function applySetUpFile(
  command: Pick<SetUpOptions, "file" | "planOnly" | "env"> & {
    readonly config: Config;
  },
): Promise<number> {
  return runToExit(command.config, "The configuration was not applied", async (given) => {
    const complain = (text: string): void => void process.stderr.write(text);
    const end = await runSetUp(command.config, { ...command, ...given, complain });
    // Use a separate exit code for an invalid file, because a plan exits with 2 if it contains changes.
    if (end === "refused") return command.planOnly ? EXIT.failed : EXIT.wrongSettings;
    return end === "differs" ? EXIT.differs : EXIT.done;
  });
}

export interface SetUpOptions extends CommandRun {
  readonly file: string;
  /** Whether to print the plan without applying it. */
  readonly planOnly: boolean;
  readonly env: Variables;
  readonly complain: (text: string) => void;
}

/**
 * Updates the database to match a config file, without deleting objects that the file does not declare. Running gateways pick up
 * the changes within two seconds.
 *
 * Checks the whole file before it opens a database, and the whole plan before the first write. Returns `refused` and changes
 * nothing if the file is invalid or conflicts with the database. Returns `differs` if the plan contains changes.
 *
 * @throws DataDirInUseError if a gateway is running on the embedded servers of this data directory
 */
export async function runSetUp(
  config: Config,
  options: SetUpOptions,
): Promise<"done" | "differs" | "refused"> {
  const { file, env, log, signal, print, complain } = options;
  const refuse = (findings: readonly Finding[]): "refused" => {
    complain(`${file} is invalid. No changes were made.\n${renderFindings(findings)}`);
    return "refused";
  };
  await using opening = new AsyncDisposableStack();
  const schemas = opening.use(startSchemaCompiler());
  const checkDeps: CheckChannelDeps = {
    channelKinds,
    presets: readPresets(),
    checkDefinitions: (source) => checkDefinitions(schemas, source, signal),
  };
  const wanted = await readSetUp(checkDeps, file, env);
  if (!wanted.ok) return refuse(wanted.error);

  const store = opening.use(await openDatabaseStore(config, { log, signal }));
  const { db } = opening.use(openDatabase({ connection: store.database }));
  const clock = Date.now;
  const openKeyring = (from: Queryable) => openMasterKeyring(from, store.keys, clock);
  await migrate({ connection: store.database, log, openKeyring });
  const keyring = await openKeyring(db);
  const deps: ApplyDeps = { ...checkDeps, db, keyring, clock, apiKey: config.apiKey };

  const plan = await planSetUp(deps, wanted.value);
  if (plan.conflicts.length > 0) return refuse(plan.conflicts);
  await print(`${options.planOnly ? "Would do" : "To do"}:\n${renderSteps(plan.steps)}`);
  if (options.planOnly) return plan.steps.some(isChange) ? "differs" : "done";

  const { conflicts, steps } = await applySetUp(deps, wanted.value, (organization, token) =>
    print(keyLine(organization, token)),
  );
  if (conflicts.length > 0) {
    throw new Error(
      `another user or process changed the same objects at the same time; apply the file again: ${renderFindings(conflicts)}`,
    );
  }
  await print(`Done: ${steps.filter(isChange).length} changed.\n`);
  return "done";
}

const keyLine = (organization: string, token: string): string =>
  `API key of the organization ${organization} (shown only once): ${token}\n`;

async function readSetUp(
  checkDeps: CheckChannelDeps,
  file: string,
  env: Variables,
): Promise<Result<readonly WantedOrganization[], readonly Finding[]>> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => error);
  if (typeof text !== "string") return err([{ path: "", message: `cannot be read (${text.code})` }]);
  const declared = parseSetUp(text);
  return declared.ok ? checkSetUp({ ...checkDeps, env }, declared.value) : declared;
}
