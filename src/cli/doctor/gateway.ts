import packageJson from "../../../package.json" with { type: "json" };
import type { Problem } from "../../resources/events/problems/schema.ts";
import { createApi, formatCause } from "../client/api.ts";
import { type Credentials, findBaseUrl, findCredentials } from "../client/credentials.ts";
import { aboutOf } from "../commands/resources/problems.ts";
import { CommandError } from "../exit.ts";
import type { Io } from "../io.ts";
import { type Found, ok, warning, wrong } from "./check-result.ts";

const TIMEOUT_MS = 10_000;
const WARNING_ACTION = "Run `inlet problems list` for a suggested action, or see the page Watching.";

interface Ready {
  readonly status?: string;
  readonly checks?: Readonly<
    Record<
      string,
      {
        readonly ok: boolean;
        readonly reason?: string;
        readonly warnings?: readonly string[];
        readonly facts?: Readonly<Record<string, unknown>>;
      }
    >
  >;
}

export async function checkGateway({ env, signal }: Io, url: string | undefined): Promise<readonly Found[]> {
  const baseUrl = await findBaseUrl(env, url);
  const readiness = await checkReadiness(baseUrl, signal);
  if (readiness.length === 1 && readiness[0]?.state === "wrong" && readiness[0].check === "gateway")
    return readiness;
  const credentials = await findCredentials(env, url).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined;
    throw error;
  });
  if (credentials === undefined) {
    return [
      ...readiness,
      warning(
        "API key",
        `No API key is stored for ${baseUrl}`,
        "Run `inlet login` to store a key, which enables more checks.",
      ),
    ];
  }
  return [...readiness, ...(await checkWithKey(credentials, signal))];
}

async function checkReadiness(baseUrl: string, signal: AbortSignal): Promise<readonly Found[]> {
  const origin = baseUrl.replace(/\/v1$/, "");
  let ready: Ready;
  try {
    const response = await fetch(`${origin}/readyz`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    ready = (await response.json()) as Ready;
  } catch (error) {
    const suggestedAction =
      "Start the gateway with `inlet start`, or choose another one with --url or `inlet login`.";
    return [
      wrong(
        "gateway",
        `${origin} cannot be reached, or is not an Inlet gateway: ${formatCause(error)}`,
        suggestedAction,
      ),
    ];
  }
  const failing = Object.entries(ready.checks ?? {}).filter(([, { ok: isOk }]) => !isOk);
  const suggestedAction =
    "Check the gateway's log (see the page Logs for event names), its PostgreSQL and its Redis.";
  return [
    ready.status !== "notReady"
      ? ok("gateway", `${origin} is ready.`)
      : wrong("gateway", `${origin} is not ready: hooks respond with 503.`, "See the failed checks below."),
    ...checkProcesses(ready),
    ...failing.map(([name, { reason = "" }]) => wrong(`gateway: ${name}`, reason, suggestedAction)),
    ...Object.entries(ready.checks ?? {}).flatMap(([name, { warnings = [] }]) =>
      warnings.map((text) => warning(`gateway: ${name}`, text, WARNING_ACTION)),
    ),
  ];
}

/** Reports the processes of a gateway with `INLET_PROCESSES`. */
function checkProcesses({ checks }: Ready): readonly Found[] {
  const { processes, ready, recentlyEnded } = checks?.processes?.facts ?? {};
  if (typeof processes !== "number" || typeof ready !== "number") return [];
  const count = ok("processes", `${ready} of ${processes} processes are ready.`);
  if (typeof recentlyEnded !== "number" || recentlyEnded === 0) return [count];
  const ended = `Processes ended unexpectedly in the last 10 minutes: ${recentlyEnded}`;
  return [count, warning("processes", ended, "Look for `process.ended` and the lines before it in the log.")];
}

async function checkWithKey(credentials: Credentials, signal: AbortSignal): Promise<readonly Found[]> {
  const api = createApi(credentials, signal);
  const look = async (check: string, run: () => Promise<readonly Found[]>): Promise<readonly Found[]> =>
    run().catch((error: unknown) => {
      if (!(error instanceof CommandError)) throw error;
      return [warning(check, error.message, "Use a key with this permission, or run `inlet login`.")];
    });
  return [
    ...(await look("version", async () => {
      const { info } = await api.get<{ readonly info: { readonly version: string } }>("/openapi.json");
      const { version } = packageJson;
      return [
        info.version === version
          ? ok("version", version)
          : warning(
              "version",
              `The gateway has version ${info.version}, this CLI has ${version}`,
              "Use a CLI with the same version as the gateway.",
            ),
      ];
    })),
    ...(await look("API key", async () => {
      const { permissions } = await api.get<{ readonly permissions: readonly string[] }>("/auth/whoami");
      return [ok("API key", `Permissions: ${permissions.join(", ") || "none"}.`)];
    })),
    ...(await look("problems", async () => {
      const { items } = await api.list<Problem>("/problems");
      const unresolved = items.filter(({ state }) => state !== "resolved");
      const open = unresolved.filter(({ mutedUntil }) => mutedUntil === null);
      const muted = unresolved.length - open.length;
      if (open.length === 0)
        return [ok("problems", muted === 0 ? "No open problems." : `No open problems, and ${muted} muted.`)];
      return open.map((problem) => {
        const tell = problem.severity === "error" ? wrong : warning;
        return tell(`problem: ${aboutOf(problem)}`, problem.message, problem.suggestedAction);
      });
    })),
  ];
}
