import { api, type Schemas } from "../../api/client.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useFilters } from "../../kit/list/filters.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { ChannelDetail } from "./detail.tsx";
import { ChannelState } from "./state-badge.tsx";

type Channel = Schemas["Channel"];

const COLUMNS: readonly Column<Channel>[] = [
  { title: "Channel", cell: ({ uid }) => <UntrustedText>{uid}</UntrustedText>, width: "minmax(0, 1.5fr)" },
  { title: "Kind", cell: ({ kind }) => kind, width: "6.5rem", priority: 2 },
  { title: "State", cell: ({ state }) => <ChannelState state={state} />, width: "8.5rem" },
  {
    title: "Events",
    cell: ({ events }) => <UntrustedText>{events.map(({ type }) => type).join(", ")}</UntrustedText>,
    width: "minmax(0, 2fr)",
    priority: 2,
  },
  {
    title: "Title",
    cell: ({ title }) => <UntrustedText>{title}</UntrustedText>,
    width: "minmax(0, 1fr)",
    priority: 3,
  },
];

export default function Channels({ appId }: { readonly appId: string }) {
  const filters = useFilters(["channel"]);
  const pages = usePages<Channel>(
    (page, signal) => api.list("/apps/{appId}/channels", { path: { appId }, query: page, signal }),
    [appId],
  );
  const open = filters.values.channel;
  return (
    <Page
      title="Channels"
      lead="A channel receives or fetches events for this app. It has settings and definitions."
      actions={
        <a class="button primary" href="/console/start">
          Receive from a provider
        </a>
      }
    >
      <div class="split">
        <div class="stack">
          <PagedTable
            label="Channels"
            columns={COLUMNS}
            pages={pages}
            keyOf={({ uid }) => uid}
            onOpen={({ uid }) => filters.set({ channel: uid })}
            openKey={open}
            of="channels"
            empty={
              <Empty title="This app has no channels">
                <p>
                  <a href="/console/start">Choose a provider</a> to create a channel.
                </p>
              </Empty>
            }
          />
        </div>
        {open !== undefined && (
          <ChannelDetail
            key={open}
            appId={appId}
            channelUid={open}
            onClose={() => filters.set({})}
            onChanged={pages.reload}
          />
        )}
      </div>
    </Page>
  );
}
