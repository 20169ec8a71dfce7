import { api, unwrapList } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useFilters } from "../../kit/list/filters.tsx";
import { hasPermission } from "../../session/session.ts";
import { Connected } from "./connected.tsx";
import { MakeChannel } from "./make-channel.tsx";
import { Providers } from "./providers.tsx";
import "./start.css";

/** Steps to a first event: choose the sender, create the channel, set up the sender, send a test event. The URL holds the step. */
export default function Start() {
  const { values, set } = useFilters(["preset", "app", "channel"]);
  const presets = useLoad(
    async (signal) =>
      // Without permission to read presets, the user creates a channel without a preset.
      hasPermission("presets.read")
        ? unwrapList(api.GET("/presets", { params: { query: { limit: 200 } }, signal }))
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
              onMade={(made) => set({ preset: name, ...made })}
            />
          );
        }}
      </WhenLoaded>
    </Page>
  );
}
