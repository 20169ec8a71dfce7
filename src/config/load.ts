import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import type { z } from "zod";
import type { Finding } from "../lib/errors.ts";
import { findNearest } from "../lib/nearest.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { type Config, type Role, SETTING_LIST, settingsSchema } from "./schema.ts";
import type { SettingInfo } from "./setting.ts";

/** Matches variables that Kubernetes sets in every pod if a service is called `inlet`. */
const KUBERNETES_SERVICE_LINK = /^INLET_(SERVICE_(HOST|PORT(_.*)?)|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$/;

/** Environment variables for CLI commands. The gateway ignores them instead of rejecting them as unknown settings. */
export const COMMAND_VARIABLES: ReadonlySet<string> = new Set([
  "INLET_URL",
  "INLET_APP",
  "INLET_SECRET",
  "INLET_BACKUP_PASSPHRASE",
]);

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Parses the settings from environment variables and the settings file. Environment variables take precedence. Errors never quote a secret.
 */
export function loadConfig(env: Variables, file?: string): Result<Config, readonly Finding[]> {
  const findings: Finding[] = [];
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
  if (textOf("INLET_OIDC_ISSUER") && !textOf("INLET_OIDC_AUDIENCE")) {
    findings.push({
      path: "INLET_OIDC_AUDIENCE",
      message: "is required with INLET_OIDC_ISSUER, because the issuer also signs tokens for other audiences",
    });
  }
  if (parsed.success) findings.push(...checkBackgroundProcesses(parsed.data));
  return findings.length > 0 || !parsed.success ? err(findings) : ok(parsed.data);
}

/** At least one process must serve connections, and each process must have a role. */
function checkBackgroundProcesses({ processes, backgroundProcesses, roles }: Config): readonly Finding[] {
  if (backgroundProcesses === 0) return [];
  const path = "INLET_BACKGROUND_PROCESSES";
  if (backgroundProcesses >= processes)
    return [{ path, message: `must be less than INLET_PROCESSES, which is ${processes}` }];
  const isBackground = (role: Role): boolean => role === "sources" || role === "delivery";
  return roles.some(isBackground) && !roles.every(isBackground)
    ? []
    : [{ path, message: "needs one of the roles sources, delivery and one of api, hooks in INLET_ROLES" }];
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
  const rule = path.length > 1 ? `each part ${message}` : message;
  return secret ? rule : `${rule}, not ${JSON.stringify(text?.slice(0, 80))}`;
}
