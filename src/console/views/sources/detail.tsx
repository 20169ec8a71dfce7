import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { ErrorNote, LastError } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
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
  const [asked, setAsked] = useState<"dryRun" | "move" | "recover" | "reset">();
  const close = (): void => setAsked(undefined);
  const turn = channel.state === "paused" ? "resume" : "pause";
  const toggle = useAction(async () => {
    await send("POST", `${path}/${turn}`, { body: {} });
    toast(turn === "pause" ? "Paused. It keeps its cursor." : "Resumed.");
    onChanged();
  });
  return (
    <DetailPanel title={channel.uid} onClose={onClose}>
      <SourceState {...source} />
      {source.lastError && <LastError error={source.lastError} isBad={source.health === "failing"} />}
      <Timeline source={source} />
      {source.reconcile !== null && <Reconcile appId={appId} reconcile={source.reconcile} />}
      <Facts
        facts={{
          Reads: <UntrustedText>{addressOf(channel.config)}</UntrustedText>,
          "In this state since": <Time at={source.since} />,
          Lag: source.lagMs === null ? "not known" : formatDuration(source.lagMs),
          Worker: <UntrustedText>{source.owner}</UntrustedText>,
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
      {hasPermission("apps.write") && (
        <div class="row wrap">
          {channel.kind === "polling" && (
            <Button look="primary" onClick={() => setAsked("dryRun")}>
              Dry run
            </Button>
          )}
          <Button onClick={() => setAsked("move")}>Move the cursor</Button>
          <Button onClick={() => setAsked("reset")}>Reset the cursor</Button>
          {source.reconcile !== null && (
            <Button onClick={() => setAsked("recover")}>Publish listed items</Button>
          )}
          <Button disabled={toggle.isRunning} onClick={() => void toggle.run()}>
            {turn === "pause" ? "Pause" : "Resume"}
          </Button>
        </div>
      )}
      {toggle.error && <ErrorNote error={toggle.error} />}
      <ApiCall call={{ method: "GET", path: `${path}/source` }} />
      {asked === "dryRun" && <DryRun path={path} cursor={source.cursor.value} onClose={close} />}
      {asked === "move" && <MoveCursor path={path} shown={shown} onClose={close} onDone={onChanged} />}
      {asked === "recover" && <Recover path={path} onClose={close} onDone={onChanged} />}
      {asked === "reset" && (
        <Confirm
          title="Reset the cursor?"
          verb="Reset the cursor"
          danger
          call={{ method: "DELETE", path: `${path}/source/cursor` }}
          onClose={close}
          onDone={() => {
            toast("Cursor reset. The source starts again at its startAt setting.");
            onChanged();
          }}
        >
          <p>
            The source starts as if it had never run. Items that are still remembered are not published twice.
            With <code>startAt: "now"</code>, it skips all items up to now.
          </p>
        </Confirm>
      )}
    </DetailPanel>
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
