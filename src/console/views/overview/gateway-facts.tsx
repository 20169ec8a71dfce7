import { ApiError } from "../../api/api-error.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { formatLabel } from "../../kit/form/labels.ts";
import { isRecord } from "../../kit/form/schema.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { formatPercent } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { Tile, Tiles } from "./tiles.tsx";

type Readiness = InletApi.components["schemas"]["Readiness"];

const TONES = { ready: "ok", degraded: "warn", notReady: "bad" } as const;

/** Loads the readiness report. Accepts an error status too, because a gateway that is not ready responds with 503 and the reasons. */
async function loadReadiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch("/readyz", { signal, credentials: "omit", cache: "no-store" }).catch(
    (error: unknown) => {
      throw signal.aborted ? error : ApiError.unreachable(error);
    },
  );
  return response.json();
}

const factsOf = ({ checks }: Readiness, name: string): Readonly<Record<string, unknown>> => {
  const check: unknown = checks[name];
  return isRecord(check) && isRecord(check.facts) ? check.facts : {};
};

/** Shows the state of this gateway, PostgreSQL and Redis, as reported by `/readyz`. */
export function GatewayFacts() {
  const loaded = useLoad(loadReadiness, [], { everyMs: 10_000 });
  return (
    <section class="section" aria-label="Gateway">
      <h2>Gateway</h2>
      <WhenLoaded loaded={loaded} lines={5} as="tiles">
        {(readiness) => <Facts readiness={readiness} />}
      </WhenLoaded>
    </section>
  );
}

function Facts({ readiness }: { readonly readiness: Readiness }) {
  const redis = factsOf(readiness, "redis");
  const changes = factsOf(readiness, "changes");
  const sources = factsOf(readiness, "sources");
  const wrong = Object.entries(readiness.checks).filter(([, { ok }]) => !ok);
  const warnings = Object.entries(readiness.checks).flatMap(([name, check]) =>
    (check.warnings ?? []).map((warning) => ({ name, warning })),
  );
  const memory = typeof redis.memoryUsedFraction === "number" ? redis.memoryUsedFraction : undefined;
  return (
    <>
      <Tiles>
        <Tile title="State" href="/readyz">
          <Badge tone={TONES[readiness.status]}>{formatLabel(readiness.status).toLowerCase()}</Badge>
        </Tile>
        <Tile
          title="Durability"
          hint={`Redis ${String(redis.version ?? "")}${redis.cluster === true ? ", Cluster" : ""}`}
        >
          {String(redis.durability ?? "unknown")}
        </Tile>
        <Tile
          title="Redis memory"
          hint={redis.memoryAlarm === true ? "nearly full" : "of maxmemory"}
          tone={redis.memoryAlarm === true ? "bad" : undefined}
        >
          {memory === undefined ? "not limited" : formatPercent(memory)}
        </Tile>
        {typeof sources.workers === "number" && (
          <Tile title="Source workers" hint={`this gateway runs ${String(sources.shards)} of 256 shards`}>
            {sources.workers}
          </Tile>
        )}
        <Tile
          title="Configuration changes"
          hint="active within two seconds"
          tone={changes.activeWithinTwoSeconds === false ? "warn" : undefined}
        >
          {changes.activeWithinTwoSeconds === false
            ? `${String(changes.stalenessSeconds)} s behind`
            : "up to date"}
        </Tile>
      </Tiles>
      {wrong.length > 0 && (
        <ul class="note bad">
          {wrong.map(([name, { reason }]) => (
            <li key={name}>
              {name}: <UntrustedText>{reason ?? "fails"}</UntrustedText>
            </li>
          ))}
        </ul>
      )}
      {warnings.length > 0 && (
        <ul class="note warn">
          {warnings.map(({ name, warning }) => (
            <li key={warning}>
              {name}: <UntrustedText>{warning}</UntrustedText>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
