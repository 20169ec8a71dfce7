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
import type { StoresRun } from "./commands/machine.ts";
import { CommandError, EXIT, type ExitCode } from "./exit.ts";
import { type ApplyDeps, applySetUp, planSetUp } from "./setup/apply.ts";
import { checkSetUp, type WantedOrganization } from "./setup/check.ts";
import type { Variables } from "./setup/environment.ts";
import { parseSetUp } from "./setup/file.ts";
import { isChange, renderFindings, renderSteps } from "./setup/plan.ts";

export interface SetUpOptions {
  readonly file: string;
  /** Whether to print the plan without applying it. */
  readonly planOnly: boolean;
  /** Whether to print JSON lines. */
  readonly isJson: boolean;
  readonly env: Variables;
}

/**
 * Updates the database to match a config file, without deleting objects that the file does not declare. Running gateways pick up
 * the changes within two seconds.
 *
 * Checks the whole file before it opens a database, and the whole plan before the first write.
 *
 * @returns the exit code, which is `EXIT.differs` if a plan contains changes
 * @throws CommandError, without a change, if the file is invalid or conflicts with the database
 * @throws DataDirInUseError if a gateway is running on the embedded servers of this data directory
 */
export async function runSetUp(
  config: Config,
  { file, planOnly, isJson, env }: SetUpOptions,
  { log, signal, print }: StoresRun,
): Promise<ExitCode> {
  const invalid = (findings: readonly Finding[]): CommandError => {
    const message = `${file} is invalid. No changes were made.\n${renderFindings(findings).trimEnd()}`;
    // A plan uses another exit code, because it exits with 2 if it contains changes.
    return new CommandError(message, { exitCode: planOnly ? EXIT.failed : EXIT.wrongSettings });
  };
  await using opening = new AsyncDisposableStack();
  const schemas = opening.use(startSchemaCompiler());
  const checkDeps: CheckChannelDeps = {
    channelKinds,
    presets: readPresets(),
    checkDefinitions: (source) => checkDefinitions(schemas, source, signal),
  };
  const wanted = await readSetUp(checkDeps, file, env);
  if (!wanted.ok) throw invalid(wanted.error);

  const store = opening.use(await openDatabaseStore(config, { log, signal }));
  const { db } = opening.use(openDatabase({ connection: store.database }));
  const clock = Date.now;
  const openKeyring = (from: Queryable) => openMasterKeyring(from, store.keys, clock);
  await migrate({ connection: store.database, log, openKeyring });
  const keyring = await openKeyring(db);
  const deps: ApplyDeps = { ...checkDeps, db, keyring, clock, apiKey: config.apiKey };

  const plan = await planSetUp(deps, wanted.value);
  if (plan.conflicts.length > 0) throw invalid(plan.conflicts);
  await print(
    isJson
      ? plan.steps.map((step) => `${JSON.stringify(step)}\n`).join("")
      : `${planOnly ? "Would do" : "To do"}:\n${renderSteps(plan.steps)}`,
  );
  if (planOnly) return plan.steps.some(isChange) ? EXIT.differs : EXIT.done;

  const { conflicts, steps } = await applySetUp(deps, wanted.value, (organization, token) =>
    print(isJson ? `${JSON.stringify({ organization, apiKey: token })}\n` : keyLine(organization, token)),
  );
  if (conflicts.length > 0) {
    throw new Error(
      `another user or process changed the same objects at the same time; apply the file again: ${renderFindings(conflicts)}`,
    );
  }
  const changed = steps.filter(isChange).length;
  await print(isJson ? `${JSON.stringify({ changed })}\n` : `Done: ${changed} changed.\n`);
  return EXIT.done;
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
