import { useLocation } from "preact-iso";
import { api } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useFilters } from "../../kit/list/filters.tsx";
import { hasPermission } from "../../session/session.ts";
import { Connected } from "./connected.tsx";
import { MakeChannel } from "./make-channel.tsx";
import { Providers } from "./providers.tsx";
import "./start.css";

/**
 * Guide to the first event: choose a sender, create a channel, configure the sender and send a test event. The URL
 * contains the current step.
 */
export default function Start() {
  const { route } = useLocation();
  const { values, set } = useFilters(["preset", "app", "channel"]);
  const presets = useLoad(
    async (signal) =>
      // A user who may not read the presets skips the choice and creates a channel without a preset.
      hasPermission("presets.read")
        ? api.list("/presets", { query: { limit: 200 }, signal })
        : { rows: [], total: 0 },
    [],
  );
  return (
    <Page title="Receive events" lead="Three steps from a provider to its first event.">
      <WhenLoaded loaded={presets}>
        {({ rows }) => {
          const { app, channel, preset: name } = values;
          const preset = rows.find((one) => one.preset === name);
          if (app !== undefined && channel !== undefined) {
            return <Connected appId={app} channelUid={channel} preset={preset} onAgain={() => set({})} />;
          }
          if (name === undefined)
            return <Providers presets={rows} onChoose={(chosen) => set({ preset: chosen })} />;
          return (
            <MakeChannel
              preset={preset}
              onBack={() => set({})}
              onMade={({ app: appId, channel: uid, isPolled }) =>
                isPolled
                  ? route(`/console/sources?app=${appId}&channel=${uid}`)
                  : set({ preset: name, app: appId, channel: uid })
              }
            />
          );
        }}
      </WhenLoaded>
    </Page>
  );
}
