import { useState } from "preact/hooks";
import { toApiError } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { PauseButton } from "../../kit/feedback/buttons.tsx";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Facts, Page, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";
import { NewAddress } from "../channels/actions.tsx";
import { ChannelState } from "../channels/state-badge.tsx";
import { HeldItems } from "./held-items.tsx";
import { Installs } from "./installs.tsx";
import { IntakeSettings } from "./settings.tsx";
import { TryDelivery } from "./try-delivery.tsx";

type Intake = Schemas["Intake"];

const REFRESH_MS = 5_000;

/** Page of a blueprint's intake: one address for the events of all installs. */
export default function IntakePage({ blueprintId }: { readonly blueprintId: string }) {
  const path = { blueprintId };
  const loaded = useLoad(
    async (signal) => {
      const [blueprint, intake] = await Promise.all([
        api.get("/blueprints/{blueprintId}", { path, signal }),
        api.get("/blueprints/{blueprintId}/intake", { path, signal }).catch((error: unknown) => {
          if (toApiError(error).status === 404) return undefined;
          throw error;
        }),
      ]);
      return { blueprint, intake };
    },
    [blueprintId],
    { everyMs: REFRESH_MS },
  );
  const [isChanging, setChanging] = useState(false);
  const title = loaded.data?.blueprint.title ?? "Blueprint";
  const canWrite = hasPermission("blueprints.write");
  return (
    <Page
      title="Intake"
      crumbs={[
        { title: "Blueprints", href: "/console/blueprints" },
        { title, href: `/console/blueprints?id=${blueprintId}` },
      ]}
      lead="One address and one set of secrets for the events of all customers. The route key of an item determines the install that receives it."
    >
      <WhenLoaded loaded={loaded}>
        {({ blueprint, intake }) => (
          <div class="stack">
            {intake === undefined ? (
              <Empty title="The blueprint has no intake">
                <p>
                  Create one if the provider sends the events of all customers to one address, as Slack does.
                </p>
                {canWrite && (
                  <Button look="primary" onClick={() => setChanging(true)}>
                    Create an intake
                  </Button>
                )}
              </Empty>
            ) : (
              <>
                <Shown intake={intake} />
                {canWrite && (
                  <Actions intake={intake} onChange={() => setChanging(true)} onChanged={loaded.reload} />
                )}
                <Installs blueprintId={blueprintId} />
                <TryDelivery
                  blueprintId={blueprintId}
                  preset={typeof intake.config.preset === "string" ? intake.config.preset : undefined}
                />
                <HeldItems blueprintId={blueprintId} />
              </>
            )}
            <ApiCall call={{ method: "GET", path: `/blueprints/${blueprintId}/intake` }} />
            {isChanging && (
              <IntakeSettings
                blueprint={blueprint}
                intake={intake}
                onClose={() => setChanging(false)}
                onSaved={loaded.reload}
              />
            )}
          </div>
        )}
      </WhenLoaded>
    </Page>
  );
}

function Shown({ intake }: { readonly intake: Intake }) {
  const { url, state, channel, routeBy, trustUnsigned, awaitsApproval, config, updatedAt } = intake;
  return (
    <>
      {awaitsApproval && (
        <p class="note warn">A store must approve the blueprint before the latest settings take effect.</p>
      )}
      {url !== null && (
        <Code text={url} label="address" title="Address (enter it once at the provider)" wrap />
      )}
      <Facts
        facts={{
          State: <ChannelState state={state} />,
          Channel: channel,
          Preset: typeof config.preset === "string" && config.preset,
          "Route key": routeBy.join(", "),
          "Unsigned keys": trustUnsigned && "accepted",
          Changed: <Time at={updatedAt} as="ago" />,
        }}
      />
    </>
  );
}

interface ActionsProps {
  readonly intake: Intake;
  readonly onChange: () => void;
  readonly onChanged: () => void;
}

function Actions({ intake: { blueprintId, state }, onChange, onChanged }: ActionsProps) {
  const path = `/blueprints/${blueprintId}/intake`;
  return (
    <Section title="Actions">
      <div class="row wrap">
        <Button onClick={onChange}>Settings</Button>
        <PauseButton
          path={path}
          isPaused={state === "paused"}
          effect="Deliveries are stored, and routed in order when you resume."
          onDone={onChanged}
        />
        <NewAddress path={path} one="intake" onDone={onChanged}>
          Enter the new one at the provider by then.
        </NewAddress>
      </div>
    </Section>
  );
}
