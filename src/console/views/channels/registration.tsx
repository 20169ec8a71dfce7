import { useState } from "preact/hooks";
import { api, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { ErrorNote, LastError, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Facts } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { indentJson, isJson } from "../../kit/text/indent-json.ts";
import { Time } from "../../kit/text/time.tsx";
import { REGISTRATION_TONES } from "../../kit/text/tones.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

const REFRESH_MS = 2_000;

/** Whether Inlet registers the channel's address at its provider. */
export const isRegistered = ({ config }: Schemas["Channel"]): boolean =>
  "registration" in config && config.registration !== undefined;

interface Props {
  readonly appId: string;
  readonly channelUid: string;
}

/** State of a channel's registration at its provider, with the actions of users who may change the channel. */
export function Registration({ appId, channelUid }: Props) {
  const loaded = useLoad(
    (signal) =>
      api.get("/apps/{appId}/channels/{channelId}/registration", {
        path: { appId, channelId: channelUid },
        signal,
      }),
    [appId, channelUid],
    { everyMs: REFRESH_MS },
  );
  return (
    <WhenLoaded loaded={loaded}>
      {({ state, target, providerId, connectionId, events, lastError, ...times }) => (
        <div class="stack">
          <p role="status">
            <Badge tone={REGISTRATION_TONES[state]}>{state}</Badge>
          </p>
          {lastError && <LastError error={lastError} isBad={state === "failed"} />}
          <Facts
            facts={{
              Target: <UntrustedText>{target}</UntrustedText>,
              "Id at the provider": providerId !== null && <UntrustedText>{providerId}</UntrustedText>,
              Connection: connectionId !== null && (
                <a href={`/console/connections?id=${connectionId}`}>{connectionId}</a>
              ),
              "Event types": events !== null && <UntrustedText>{events.join(", ")}</UntrustedText>,
              Expires: times.expiresAt !== null && <Time at={times.expiresAt} />,
              "Last check": <Time at={times.checkedAt} as="ago" />,
              "Next request": <Time at={times.nextAt} />,
              "Events may be missing since": times.lapsedAt !== null && <Time at={times.lapsedAt} />,
            }}
          />
          {hasPermission("apps.write") && (
            <Actions path={`/apps/${appId}/channels/${channelUid}/registration`} onChanged={loaded.reload} />
          )}
        </div>
      )}
    </WhenLoaded>
  );
}

interface ActionsProps {
  /** API path of the registration. */
  readonly path: string;
  readonly onChanged: () => void;
}

function Actions({ path, onChanged }: ActionsProps) {
  const [asked, setAsked] = useState<"recreate" | "requests">();
  const close = (): void => setAsked(undefined);
  const check = useAction(async () => {
    await send("POST", `${path}/check`, { body: {} });
    toast("Inlet asks the provider now.");
    onChanged();
  });
  return (
    <>
      <div class="row wrap">
        <Button disabled={check.isRunning} onClick={() => void check.run()}>
          Check now
        </Button>
        <Button onClick={() => setAsked("recreate")}>Recreate</Button>
        <Button onClick={() => setAsked("requests")}>Show requests</Button>
      </div>
      {check.error && <ErrorNote error={check.error} />}
      {asked === "recreate" && (
        <Confirm
          title="Create this registration again?"
          verb="Recreate"
          call={{ method: "POST", path: `${path}/recreate`, body: {} }}
          onClose={close}
          onDone={onChanged}
        >
          <p>
            Inlet looks for its webhook at the provider, and creates it if it is missing. A secret that only
            the provider knows is replaced.
          </p>
        </Confirm>
      )}
      {asked === "requests" && <Requests path={path} onClose={close} />}
    </>
  );
}

/** Dialog with the requests that Inlet sends to the provider. Opening it sends none of them. */
function Requests({ path, onClose }: { readonly path: string; readonly onClose: () => void }) {
  const call = { method: "POST", path: `${path}/dryRun`, body: {} };
  const loaded = useLoad(
    (signal) => send<Schemas["RegistrationDryRun"]>(call.method, call.path, { body: call.body, signal }),
    [path],
  );
  return (
    <Dialog title="Requests to the provider" onClose={onClose} wide>
      <div class="stack">
        <p>
          These are the requests in the life of the registration. Credentials and secrets are shown as ***.
        </p>
        <WhenLoaded loaded={loaded}>
          {({ requests }) =>
            requests.map((one) => <Code key={one.step} label={one.step} text={formatRequest(one)} wrap />)
          }
        </WhenLoaded>
        <ApiCall call={call} />
      </div>
    </Dialog>
  );
}

function formatRequest({ method, url, headers, body }: Schemas["RegistrationRequest"]): string {
  const lines = [`${method} ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
  if (body !== null) lines.push("", isJson(body) ? indentJson(body) : body);
  return lines.join("\n");
}
