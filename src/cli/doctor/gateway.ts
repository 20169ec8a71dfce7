import packageJson from "../../../package.json" with { type: "json" };
import { createApi, formatCause } from "../client/api.ts";
import { type Credentials, findBaseUrl, findCredentials } from "../client/credentials.ts";
import type { Problem } from "../client/entities.ts";
import { aboutOf } from "../commands/resources/problems.ts";
import { CommandError } from "../exit.ts";
import type { Io } from "../io.ts";
import { type Found, ok, warning, wrong } from "./look.ts";

const TIMEOUT_MS = 10_000;

interface Ready {
  readonly status?: string;
  readonly checks?: Readonly<
    Record<string, { readonly ok: boolean; readonly reason?: string; readonly problems?: unknown }>
  >;
}

/** What is wrong with the gateway that commands would call. */
export async function lookAtGateway({ env, signal }: Io, url: string | undefined): Promise<readonly Found[]> {
  const baseUrl = await findBaseUrl(env, url);
  const readiness = await lookAtReadiness(baseUrl, signal);
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
        `There is none for ${baseUrl}`,
        "Run `inlet login`: with a key more can be looked at.",
      ),
    ];
  }
  return [...readiness, ...(await lookWithKey(credentials, signal))];
}

async function lookAtReadiness(baseUrl: string, signal: AbortSignal): Promise<readonly Found[]> {
  const origin = baseUrl.replace(/\/v1$/, "");
  let ready: Ready;
  try {
    const response = await fetch(`${origin}/readyz`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    ready = (await response.json()) as Ready;
  } catch (error) {
    const cure = "Start it (`inlet start`), or name another one by --url or `inlet login`.";
    return [wrong("gateway", `${origin} cannot be reached, or is none: ${formatCause(error)}`, cure)];
  }
  const failing = Object.entries(ready.checks ?? {}).filter(([, { ok: isOk }]) => !isOk);
  const cure = "Look at its log (event names are in the page Logs) and at its stores.";
  return [
    ready.status === "ready"
      ? ok("gateway", `${origin} is ready.`)
      : wrong("gateway", `${origin} is not ready: hooks are answered 503.`, "See the lines below."),
    ...failing.map(([name, { reason = "" }]) => wrong(`gateway: ${name}`, reason, cure)),
  ];
}

async function lookWithKey(credentials: Credentials, signal: AbortSignal): Promise<readonly Found[]> {
  const api = createApi(credentials, signal);
  const look = async (check: string, run: () => Promise<readonly Found[]>): Promise<readonly Found[]> =>
    run().catch((error: unknown) => {
      if (!(error instanceof CommandError)) throw error;
      return [warning(check, error.message, "Use a key that may, or `inlet login`.")];
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
              `The gateway is ${info.version}, this program ${version}`,
              "Use the program of the gateway's release.",
            ),
      ];
    })),
    ...(await look("API key", async () => {
      const { permissions } = await api.get<{ readonly permissions: readonly string[] }>("/auth/whoami");
      return [ok("API key", `It may ${permissions.join(", ") || "nothing"}.`)];
    })),
    ...(await look("problems", async () => {
      const { items } = await api.list<Problem>("/problems");
      const open = items.filter(({ state }) => state !== "resolved");
      if (open.length === 0) return [ok("problems", "None is open.")];
      return open.map((problem) => {
        const tell = problem.severity === "error" ? wrong : warning;
        return tell(`problem: ${aboutOf(problem)}`, problem.message, problem.cure);
      });
    })),
  ];
}
