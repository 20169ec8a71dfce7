import { useList } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { SmallTable } from "../../kit/list/small-table.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";

const REFRESH_MS = 5_000;

/** Lists the newest polls of a source: when each started, its response, and how many of its items were new. */
export function Polls({ appId, channelUid }: { readonly appId: string; readonly channelUid: string }) {
  const loaded = useList(
    "/apps/{appId}/channels/{channelId}/source/polls",
    { path: { appId, channelId: channelUid } },
    { everyMs: REFRESH_MS },
  );
  return (
    <section aria-label="Newest polls">
      <h3>Newest polls</h3>
      <WhenLoaded loaded={loaded}>
        {({ rows }) =>
          rows.length === 0 ? (
            <p class="faint">There was no poll yet.</p>
          ) : (
            <SmallTable head={["Time", "Response", "Items", "New", "Took"]}>
              {rows.map(({ at, method, status, requests, items, published, error, durationMs }) => (
                <tr key={at}>
                  <td>
                    <Time at={at} as="ago" />
                  </td>
                  <td class={error === null ? undefined : "bad"}>
                    {method} {status ?? "no response"}
                    {requests > 1 && ` in ${formatCount(requests)} requests`}
                    {error !== null && <code> {error}</code>}
                  </td>
                  <td>{formatCount(items)}</td>
                  <td>{formatCount(published)}</td>
                  <td>{formatDuration(durationMs)}</td>
                </tr>
              ))}
            </SmallTable>
          )
        }
      </WhenLoaded>
    </section>
  );
}
