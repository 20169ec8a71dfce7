import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import type { z } from "zod";
import type { Finding } from "./lib/errors.ts";
import { findNearest } from "./lib/nearest.ts";
import { err, ok, type Result } from "./lib/result.ts";
import { parseOptions } from "./options.ts";
import { type Config, SETTING_LIST, type SettingInfo, settingsSchema } from "./settings.ts";

export type { Config, Durability, Role } from "./settings.ts";

export type Command =
  | { readonly kind: "start"; readonly config: Config }
  | { readonly kind: "apply"; readonly config: Config; readonly file: string; readonly planOnly: boolean }
  | { readonly kind: "rotateMasterKey"; readonly config: Config }
  | { readonly kind: "revokeKey"; readonly config: Config; readonly named: string }
  | { readonly kind: "sealAddresses"; readonly config: Config }
  | { readonly kind: "help" };

/** Kubernetes sets these variables in every pod if a service is called `inlet`. */
const KUBERNETES_SERVICE_LINK = /^INLET_(SERVICE_(HOST|PORT(_.*)?)|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$/;

/** Environment variables that only CLI commands read. The gateway ignores them instead of reporting them as unknown settings. */
export const COMMAND_VARIABLES: ReadonlySet<string> = new Set([
  "INLET_URL",
  "INLET_APP",
  "INLET_SECRET",
  "INLET_BACKUP_PASSPHRASE",
]);

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Parses the settings from the environment and the `--config` file. The environment wins, and an empty value counts as unset. `argv`
 * excludes node and script. Each invalid setting is one finding, with its name as `path`. Findings never quote a secret.
 */
export function parseConfig(env: Variables, argv: readonly string[]): Result<Command, readonly Finding[]> {
  const options = parseOptions(argv);
  if (!options.ok) return options;
  const { config: file, apply, plan: planOnly = false, help } = options.value;
  const rotates = options.value["rotate-master-key"] === true;
  const revoked = options.value["revoke-key"];
  const seals = options.value["seal-addresses"] === true;
  if (help) return ok({ kind: "help" });

  const findings: Finding[] = [];
  if (planOnly && apply === undefined) findings.push({ path: "--plan", message: "requires --apply FILE" });
  if (revoked !== undefined && (rotates || apply !== undefined))
    findings.push({ path: "--revoke-key", message: "cannot be combined with another command" });
  if (rotates && apply !== undefined)
    findings.push({ path: "--rotate-master-key", message: "cannot be combined with --apply" });
  if (seals && (rotates || revoked !== undefined || apply !== undefined))
    findings.push({ path: "--seal-addresses", message: "cannot be combined with another command" });
  const fromFile = file === undefined ? {} : readSettingsFile(resolve(file), findings);
  findings.push(...findUnknown(Object.keys(env).filter((name) => name.startsWith("INLET_"))));
  findings.push(...findUnknown(Object.keys(fromFile)));

  const textOf = (name: string) => env[name]?.trim() || fromFile[name]?.trim() || undefined;
  const texts = Object.fromEntries(SETTING_LIST.map(({ key, name }) => [key, textOf(name)]));
  const parsed = settingsSchema.safeParse(texts);
  for (const setting of SETTING_LIST) {
    const issue = parsed.error?.issues.find(({ path }) => path[0] === setting.key);
    if (issue) findings.push({ path: setting.name, message: describe(setting, texts[setting.key], issue) });
  }
  if (textOf("DATABASE_URL") && !textOf("INLET_MASTER_KEY")) {
    findings.push({
      path: "INLET_MASTER_KEY",
      message:
        "is required with DATABASE_URL (`openssl rand -base64 32` creates one; keep it as long as the database)",
    });
  }
  if (rotates && textOf("INLET_MASTER_KEY") && !textOf("INLET_NEW_MASTER_KEY")) {
    findings.push({
      path: "INLET_NEW_MASTER_KEY",
      message: "is required by --rotate-master-key when INLET_MASTER_KEY is set",
    });
  }
  if (textOf("INLET_OIDC_ISSUER") && !textOf("INLET_OIDC_AUDIENCE")) {
    findings.push({
      path: "INLET_OIDC_AUDIENCE",
      message: "is required with INLET_OIDC_ISSUER, because the issuer also signs tokens for other audiences",
    });
  }
  if (findings.length > 0 || !parsed.success) return err(findings);
  const config = parsed.data;
  if (rotates) return ok({ kind: "rotateMasterKey", config });
  if (seals) return ok({ kind: "sealAddresses", config });
  if (revoked !== undefined) return ok({ kind: "revokeKey", config, named: revoked });
  return ok(
    apply === undefined
      ? { kind: "start", config }
      : { kind: "apply", config, file: resolve(apply), planOnly },
  );
}

/** @param port the port that the listener has bound */
export function publicUrls(
  config: Config,
  port: number,
): { readonly baseUrl: string; readonly hooksUrl: string } {
  const any: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  const host = any[config.host] ?? config.host;
  const origin = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const root = config.baseUrl?.replace(/\/v1$/, "") ?? origin;
  return { baseUrl: `${root}/v1`, hooksUrl: config.hooksUrl ?? root };
}

export function renderSettingsTable(): string {
  const rows = SETTING_LIST.map(({ name, description, unsetMeans, defaultText, secret }) => {
    const fallback = unsetMeans ?? (defaultText ? `\`${defaultText}\`` : "");
    const cells = [`\`${name}\``, fallback, description + (secret ? " Secret." : "")];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| Setting | Default | Description |", "|---|---|---|", ...rows].join("\n");
}

/** Renders an example settings file. Every setting is commented out, so using the file unedited changes nothing. */
export function renderExampleFile(): string {
  const blocks = SETTING_LIST.map(({ name, description, unsetMeans, defaultText = "" }) =>
    unsetMeans
      ? `# ${description} Default: ${unsetMeans}.\n#${name}=`
      : `# ${description}\n#${name}=${defaultText}`,
  );
  return `# Settings of Inlet. Copy this file, remove the # from each setting that you change, and start with
# \`npm start -- --config FILE\`. The environment wins over the file.

${blocks.join("\n\n")}
`;
}

function readSettingsFile(file: string, findings: Finding[]): Variables {
  try {
    return parseEnv(readFileSync(file, "utf8"));
  } catch (error) {
    findings.push({
      path: "--config",
      message: `cannot read ${file} (${(error as NodeJS.ErrnoException).code})`,
    });
    return {};
  }
}

function findUnknown(names: readonly string[]): Finding[] {
  const known = SETTING_LIST.map((setting) => setting.name);
  return names
    .filter(
      (name) => !known.includes(name) && !COMMAND_VARIABLES.has(name) && !KUBERNETES_SERVICE_LINK.test(name),
    )
    .map((name) => {
      const nearest = findNearest(name, known);
      return { path: name, message: `is not a setting${nearest ? `; did you mean ${nearest}?` : ""}` };
    });
}

function describe(
  { secret }: SettingInfo,
  text: string | undefined,
  { path, message }: z.core.$ZodIssue,
): string {
  const problem = path.length > 1 ? `each part ${message}` : message;
  return secret ? problem : `${problem}, not ${JSON.stringify(text?.slice(0, 80))}`;
}
