import { ConfirmButton, DialogButton, PauseButton } from "../../kit/feedback/buttons.tsx";
import { LastError } from "../../kit/feedback/states.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";
import { DryRun } from "./dry-run.tsx";
import { MoveCursor } from "./move-cursor.tsx";
import { Polls } from "./polls.tsx";
import { Reconcile } from "./reconcile.tsx";
import { Recover } from "./recover.tsx";
import type { ShownSource } from "./shown-source.ts";
import { SourceState } from "./state-badge.tsx";
import { Timeline } from "./timeline.tsx";

interface Props {
  readonly appId: string;
  readonly shown: ShownSource;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

export function SourceDetail({ appId, shown, onClose, onChanged }: Props) {
  const { channel, source } = shown;
  const path = `/apps/${appId}/channels/${channel.uid}`;
  return (
    <DetailPanel title={channel.uid} onClose={onClose}>
      <SourceState {...source} />
      {source.lastError && <LastError error={source.lastError} isBad={source.health === "failing"} />}
      <Timeline source={source} />
      {source.reconcile !== null && <Reconcile appId={appId} reconcile={source.reconcile} />}
      <Facts
        facts={{
          Reads: addressOf(channel.config),
          "In this state since": <Time at={source.since} />,
          Lag: source.lagMs === null ? "not known" : formatDuration(source.lagMs),
          Worker: source.owner,
          Connection:
            channel.connectionId === null ? (
              "none"
            ) : (
              <a href={`/console/connections?id=${channel.connectionId}`}>{channel.connectionId}</a>
            ),
          ...(channel.kind === "polling" && {
            "Last wake":
              source.wakes === null ? (
                "not woken in 30 days"
              ) : (
                <>
                  <Time at={source.wakes.lastAt} as="ago" /> · {formatCount(source.wakes.count)} in total
                </>
              ),
          }),
          "Cursor moved": <Time at={source.cursor.updatedAt} as="ago" />,
          "Cursor version": formatCount(source.cursor.version),
        }}
      />
      {channel.kind === "polling" && <Polls appId={appId} channelUid={channel.uid} />}
      <Payload content={JSON.stringify(source.cursor.value)} label="cursor" fileName="cursor.json" />
      {hasPermission("apps.write") && <Actions path={path} shown={shown} onChanged={onChanged} />}
      <ApiCall call={{ method: "GET", path: `${path}/source` }} />
    </DetailPanel>
  );
}

interface ActionsProps extends Pick<Props, "shown" | "onChanged"> {
  /** API path of the channel. */
  readonly path: string;
}

function Actions({ path, shown, onChanged }: ActionsProps) {
  const { channel, source } = shown;
  return (
    <div class="row wrap">
      {channel.kind === "polling" && (
        <DialogButton look="primary" label="Dry run">
          {(onClose) => <DryRun path={path} cursor={source.cursor.value} onClose={onClose} />}
        </DialogButton>
      )}
      <DialogButton label="Move the cursor">
        {(onClose) => <MoveCursor path={path} shown={shown} onClose={onClose} onDone={onChanged} />}
      </DialogButton>
      <ConfirmButton
        label="Reset the cursor"
        title="Reset the cursor?"
        verb="Reset the cursor"
        danger
        call={{ method: "DELETE", path: `${path}/source/cursor` }}
        done="Cursor reset. The source starts again at its startAt setting."
        onDone={onChanged}
      >
        <p>
          The source starts as if it had never run. Items that are still remembered are not published twice.
          With <code>startAt: "now"</code>, it skips all items up to now.
        </p>
      </ConfirmButton>
      {source.reconcile !== null && <Recover path={path} onDone={onChanged} />}
      <PauseButton
        path={path}
        isPaused={channel.state === "paused"}
        effect="It keeps its cursor."
        onDone={onChanged}
      />
    </div>
  );
}

function addressOf(config: object): string | undefined {
  const { url, request } = config as {
    readonly url?: unknown;
    readonly request?: { readonly url?: unknown };
  };
  const address = url ?? request?.url;
  return typeof address === "string" ? address : undefined;
}
