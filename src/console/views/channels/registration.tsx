import { type Schemas, send } from "../../api/client.ts";
import { useGet, useLoad } from "../../api/use-load.ts";
import { ActionButton, ConfirmButton, DialogButton } from "../../kit/feedback/buttons.tsx";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { LastError, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Badge, Facts } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { indentJson, isJson } from "../../kit/text/indent-json.ts";
import { Time } from "../../kit/text/time.tsx";
import { REGISTRATION_TONES } from "../../kit/text/tones.ts";
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
  const loaded = useGet(
    "/apps/{appId}/channels/{channelId}/registration",
    { path: { appId, channelId: channelUid } },
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
              Target: target,
              "Id at the provider": providerId ?? false,
              Connection: connectionId !== null && (
                <a href={`/console/connections?id=${connectionId}`}>{connectionId}</a>
              ),
              "Event types": events === null ? false : events.join(", "),
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
  const check = async (): Promise<void> => {
    await send("POST", `${path}/check`, { body: {} });
    toast("Inlet asks the provider now.");
    onChanged();
  };
  return (
    <div class="row wrap">
      <ActionButton act={check}>Check now</ActionButton>
      <ConfirmButton
        label="Recreate"
        title="Create this registration again?"
        verb="Recreate"
        call={{ method: "POST", path: `${path}/recreate`, body: {} }}
        onDone={onChanged}
      >
        <p>
          Inlet looks for its webhook at the provider, and creates it if it is missing. A secret that only the
          provider knows is replaced.
        </p>
      </ConfirmButton>
      <DialogButton label="Show requests">
        {(onClose) => <Requests path={path} onClose={onClose} />}
      </DialogButton>
    </div>
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
