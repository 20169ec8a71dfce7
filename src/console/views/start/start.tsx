import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useFilters } from "../../kit/list/filters.tsx";
import { hasPermission } from "../../session/session.ts";
import { AnySender } from "./any-sender.tsx";
import { Connected } from "./connected.tsx";
import { MakeChannel } from "./make-channel.tsx";
import { Senders } from "./senders.tsx";
import type { MadeChannel } from "./use-creation.tsx";
import { isWay } from "./ways.tsx";
import "./start.css";

/**
 * Guide to the first event: choose a sender, create a channel, connect the sender and see the first event. The URL contains
 * the current step.
 */
export default function Start() {
  const { route } = useLocation();
  const { values, set } = useFilters(["preset", "way", "app", "channel"]);
  // A generated secret is only known in this tab, and only until the user leaves the page.
  const [made, setMade] = useState<MadeChannel & { readonly secret: string | undefined }>();
  const presets = useLoad(
    async (signal) =>
      // A user who may not read the presets can set up any other sender.
      hasPermission("presets.read")
        ? api.list("/presets", { query: { limit: 200 }, signal })
        : { rows: [], total: 0 },
    [],
  );
  const { app, channel, preset: name, way } = values;
  const step = app !== undefined && channel !== undefined ? 2 : name !== undefined || isWay(way) ? 1 : 0;
  const leave = (): void => {
    setMade(undefined);
    set({});
  };
  return (
    <Page title="Receive events" lead={STEPS[step]}>
      <WhenLoaded loaded={presets}>
        {({ rows }) => {
          const preset = rows.find((one) => one.preset === name);
          if (app !== undefined && channel !== undefined)
            return (
              <Connected
                key={`${app} ${channel}`}
                appId={app}
                channelUid={channel}
                preset={preset}
                // The page can show another channel than the last one, for example after Back.
                secret={made?.app === app && made.channel === channel ? made.secret : undefined}
                onAgain={leave}
              />
            );
          if (preset)
            return (
              <MakeChannel
                preset={preset}
                onBack={leave}
                onMade={({ app: appId, channel: uid }, isPolled) =>
                  isPolled
                    ? route(`/console/sources?app=${appId}&channel=${uid}`)
                    : set({ preset: preset.preset, app: appId, channel: uid })
                }
              />
            );
          if (isWay(way))
            return (
              <AnySender
                way={way}
                onWay={(next) => set({ way: next })}
                onBack={leave}
                onMade={(place, secret) => {
                  setMade({ ...place, secret });
                  set({ way, ...place });
                }}
              />
            );
          return <Senders presets={rows} onChoose={set} />;
        }}
      </WhenLoaded>
    </Page>
  );
}

const STEPS = [
  "Step 1 of 3: choose the sender.",
  "Step 2 of 3: create the channel.",
  "Step 3 of 3: connect the sender.",
] as const;
