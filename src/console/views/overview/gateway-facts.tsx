import { ApiProblem } from "../../api/problem.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { isRecord } from "../../kit/form/schema.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { formatPercent } from "../../kit/text/numbers.ts";
import { Stranger } from "../../kit/text/stranger.tsx";
import { Tile, Tiles } from "./tiles.tsx";

type Readiness = InletApi.components["schemas"]["Readiness"];

/** Its answer is told whatever it is: that the gateway is not ready is what one wants to know. */
async function loadReadiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch("/readyz", { signal, credentials: "omit", cache: "no-store" }).catch(
    (error: unknown) => {
      throw signal.aborted ? error : ApiProblem.unreachable(error);
    },
  );
  return response.json();
}

const factsOf = ({ checks }: Readiness, name: string): Readonly<Record<string, unknown>> => {
  const check: unknown = checks[name];
  return isRecord(check) && isRecord(check.facts) ? check.facts : {};
};

/** What everything rests on, as this gateway's `/readyz` has it. */
export function GatewayFacts() {
  const loaded = useLoad(loadReadiness, [], { everyMs: 10_000 });
  return (
    <section class="section" aria-label="Gateway">
      <h2>Gateway</h2>
      <WhenLoaded loaded={loaded} lines={2}>
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
  const memory = typeof redis.memoryUsedFraction === "number" ? redis.memoryUsedFraction : undefined;
  return (
    <>
      <Tiles>
        <Tile title="State" href="/readyz">
          {readiness.status === "ready" ? (
            <Badge tone="ok">ready</Badge>
          ) : (
            <Badge tone="bad">not ready</Badge>
          )}
        </Tile>
        <Tile
          title="Durability"
          hint={`Redis ${String(redis.version ?? "")}${redis.cluster === true ? ", Cluster" : ""}`}
        >
          {String(redis.durability ?? "unknown")}
        </Tile>
        <Tile
          title="Redis memory"
          hint={redis.memoryAlarm === true ? "above the alarm: nearly full" : "of what it may use"}
          {...(redis.memoryAlarm === true && { tone: "bad" as const })}
        >
          {memory === undefined ? "not limited" : formatPercent(memory)}
        </Tile>
        {typeof sources.workers === "number" && (
          <Tile title="Workers of sources" hint={`this one runs ${String(sources.shards)} of 256 parts`}>
            {sources.workers}
          </Tile>
        )}
        <Tile
          title="Changes in force"
          hint="within two seconds, as promised"
          {...(changes.inForceWithinTwoSeconds === false && { tone: "warn" as const })}
        >
          {changes.inForceWithinTwoSeconds === false ? `${String(changes.stalenessSeconds)} s behind` : "yes"}
        </Tile>
      </Tiles>
      {wrong.length > 0 && (
        <ul class="note bad">
          {wrong.map(([name, { reason }]) => (
            <li key={name}>
              {name}: <Stranger>{reason ?? "fails"}</Stranger>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
