import { useLocation } from "preact-iso";
import { api } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useFilters } from "../../kit/list/filters.tsx";
import { type Column, CountLine, Table } from "../../kit/list/table.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { SourceDetail } from "./detail.tsx";
import type { ShownSource } from "./shown-source.ts";
import { SourceState } from "./state-badge.tsx";

const REFRESH_MS = 5_000;
/** Maximum number of concurrent requests. The state of each source needs a separate request. */
const AT_ONCE = 8;

const COLUMNS: readonly Column<ShownSource>[] = [
  {
    title: "Channel",
    cell: ({ channel }) => <UntrustedText>{channel.uid}</UntrustedText>,
    width: "minmax(0, 1.4fr)",
  },
  { title: "Kind", cell: ({ channel }) => channel.kind, width: "4.5rem", priority: 2 },
  { title: "State", cell: ({ source }) => <SourceState {...source} />, width: "minmax(7rem, 1.6fr)" },
  { title: "Last event", cell: ({ source }) => <Time at={source.lastEventAt} as="ago" />, width: "7rem" },
  {
    title: "Next",
    cell: ({ source }) => <Time at={source.nextPollAt} as="ago" />,
    width: "7rem",
    priority: 3,
  },
  {
    title: "Last error",
    cell: ({ source }) => <UntrustedText>{source.lastError?.message}</UntrustedText>,
    width: "minmax(0, 2fr)",
    priority: 2,
  },
];

/** Page of the app's sources: streams that are kept open, and addresses that are polled. */
export default function Sources({ appId }: { readonly appId: string }) {
  const { path } = useLocation();
  const filters = useFilters(["channel"]);
  const loaded = useLoad((signal) => loadSources(appId, signal), [appId], { everyMs: REFRESH_MS });
  const open = filters.values.channel;
  return (
    <Page
      title="Sources"
      lead="A source reads a stream or polls an address. It publishes events and moves its cursor in one step."
    >
      <WhenLoaded loaded={loaded}>
        {(sources) =>
          sources.length === 0 ? (
            <Empty title="This app has no sources">
              <p>Add a channel of kind sse to follow a stream, or of kind polling to poll an address.</p>
            </Empty>
          ) : (
            <div class="split">
              <div class="stack">
                <Table
                  label="Sources"
                  columns={COLUMNS}
                  rows={sources}
                  keyOf={({ channel }) => channel.uid}
                  onOpen={({ channel }) => filters.set({ channel: channel.uid })}
                  openKey={open}
                />
                <CountLine count={sources.length} of="sources" />
              </div>
              {sources
                .filter(({ channel }) => channel.uid === open)
                .map((shown) => (
                  <SourceDetail
                    key={shown.channel.uid}
                    appId={appId}
                    shown={shown}
                    href={`${path}?channel=${shown.channel.uid}`}
                    onClose={() => filters.set({})}
                    onChanged={loaded.reload}
                  />
                ))}
            </div>
          )
        }
      </WhenLoaded>
    </Page>
  );
}

async function loadSources(appId: string, signal: AbortSignal): Promise<readonly ShownSource[]> {
  const { rows } = await api.list("/apps/{appId}/channels", {
    path: { appId },
    query: { limit: 200 },
    signal,
  });
  const pulling = rows.filter(({ kind }) => kind === "sse" || kind === "polling");
  const shown: ShownSource[] = [];
  for (let at = 0; at < pulling.length; at += AT_ONCE) {
    const part = pulling.slice(at, at + AT_ONCE).map(async (channel) => {
      const source = await api.get("/apps/{appId}/channels/{channelId}/source", {
        path: { appId, channelId: channel.uid },
        signal,
      });
      return { channel, source };
    });
    shown.push(...(await Promise.all(part)));
  }
  return shown;
}
