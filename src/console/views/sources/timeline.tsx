import type { Schemas } from "../../api/client.ts";
import { Time } from "../../kit/text/time.tsx";
import "./sources.css";

/** Draws the last and next activities of a source on a time axis, to scale. */
export function Timeline({ source }: { readonly source: Schemas["Source"] }) {
  const points = (
    [
      ["last event", source.lastEventAt, "ok"],
      ["last wake", source.wakes?.lastAt, "info"],
      ["cursor moved", source.cursor.updatedAt, "info"],
      ["last error", source.lastError?.at, "bad"],
      ["now", new Date().toISOString(), "now"],
      ["next", source.nextPollAt, "plain"],
    ] as const
  ).flatMap(([name, at, tone]) => (at ? [{ name, at, tone, ms: Date.parse(at) }] : []));
  const [from, to] = [Math.min(...points.map(({ ms }) => ms)), Math.max(...points.map(({ ms }) => ms))];
  const placeOf = (ms: number): number => (to === from ? 50 : ((ms - from) / (to - from)) * 100);
  return (
    <figure class="timeline" aria-label="Last and next activity">
      <div class="timeline-line" aria-hidden="true">
        {points.map(({ name, tone, ms }) => (
          <span key={name} class={`timeline-point ${tone}`} style={{ left: `${placeOf(ms)}%` }} />
        ))}
      </div>
      <ul>
        {points
          .toSorted((a, b) => a.ms - b.ms)
          .map(({ name, at, tone }) => (
            <li key={name}>
              <span class={`timeline-key ${tone}`} aria-hidden="true" />
              {name} {name !== "now" && <Time at={at} as="ago" />}
            </li>
          ))}
      </ul>
    </figure>
  );
}
