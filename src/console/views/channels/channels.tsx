import type { Schemas } from "../../api/client.ts";
import { Section } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";
import { ChannelActions } from "./actions.tsx";
import { isRegistered, Registration } from "./registration.tsx";
import { ChannelState } from "./state-badge.tsx";

const typesOf = ({ events }: Pick<Schemas["Channel"], "events">): string =>
  events.map(({ type }) => type).join(", ");

const specOf = (appId: string): ResourceSpec<Schemas["Channel"]> => ({
  title: "Channels",
  one: "channel",
  many: "channels",
  lead: "A channel receives or fetches events for this app. It has settings and definitions.",
  path: `/apps/${appId}/channels`,
  noun: "apps",
  columns: [
    { title: "Channel", cell: ({ uid }) => uid, width: "minmax(0, 1.5fr)" },
    { title: "Kind", cell: ({ kind }) => kind, width: "6.5rem", priority: 2 },
    { title: "State", cell: ({ state }) => <ChannelState state={state} />, width: "8.5rem" },
    { title: "Events", cell: typesOf, width: "minmax(0, 2fr)", priority: 2 },
    { title: "Title", cell: ({ title }) => title, priority: 3 },
  ],
  pageActions: () => (
    <a class="button primary" href="/console/start">
      Receive from a provider
    </a>
  ),
  emptyTitle: "This app has no channels",
  empty: (
    <p>
      <a href="/console/start">Choose a provider</a> to create a channel.
    </p>
  ),
  openParam: "channel",
  keyOf: ({ uid }) => uid,
  everyMs: 5_000,
  titleOf: ({ uid }) => uid,
  head: ({ url }) =>
    url !== null && (
      <Code text={url} label="address" title="Address (anyone who knows it can send events)" wrap />
    ),
  facts: ({ kind, state, connectionId, updatedAt, ...channel }) => ({
    State: <ChannelState state={state} />,
    Kind: kind,
    Changed: <Time at={updatedAt} as="ago" />,
    Connection: connectionId !== null && (
      <a href={`/console/connections?id=${connectionId}`}>{connectionId}</a>
    ),
    Events: typesOf(channel),
  }),
  more: (channel) => (
    <>
      {isRegistered(channel) && (
        <Section title="Registration">
          <Registration appId={appId} channelUid={channel.uid} />
        </Section>
      )}
      <Section title="Settings">
        <Payload content={JSON.stringify(channel.config)} label="settings" fileName={`${channel.uid}.json`} />
      </Section>
    </>
  ),
  actions: (channel, onChanged, etag) => (
    <>
      <Links channel={channel} />
      {hasPermission("apps.write") && <ChannelActions channel={channel} etag={etag} onChanged={onChanged} />}
    </>
  ),
  remove: {
    typed: ({ uid }) => uid,
    consequence: (channel) => (
      <p>
        The channel stops within two seconds. Its secrets, cursor and quarantined items are deleted. Its
        events stay until retention removes them.
        {isRegistered(channel) && " Inlet also removes its webhook at the provider."}
      </p>
    ),
  },
});

function Links({ channel: { appId, uid, kind } }: { readonly channel: Schemas["Channel"] }) {
  const isSource = kind === "sse" || kind === "polling";
  return (
    <>
      <a class="button" href={`/console/apps/${appId}/channels/${uid}/definitions`}>
        Definitions
      </a>
      <a class="button" href={`/console/deliveries?app=${appId}&channel=${uid}`}>
        Deliveries
      </a>
      {isSource && (
        <a class="button" href={`/console/sources?app=${appId}&channel=${uid}`}>
          Source
        </a>
      )}
    </>
  );
}

export default function Channels({ appId }: { readonly appId: string }) {
  return <ResourceView key={appId} spec={specOf(appId)} />;
}
