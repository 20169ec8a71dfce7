import { useState } from "preact/hooks";
import { api, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { loadProblems, type Problem } from "../../kit/layout/problems.ts";
import { ResourceForm } from "../../kit/resource/resource-form.tsx";
import { hasPermission } from "../../session/session.ts";
import { Acknowledge } from "./acknowledge.tsx";
import { SetConnection } from "./set-connection.tsx";

interface Props {
  readonly problem: Problem;
  readonly onDone: () => void;
}

const MUTES = [
  ["1 h", 3_600],
  ["24 h", 86_400],
] as const;

/** Buttons of an open problem: fix its channel, acknowledge it, mute it, and write a note. */
export function ProblemActions({ problem, onDone }: Props) {
  const [isWriting, setWriting] = useState(false);
  const { id, state, mutedUntil, note } = problem;
  const call = useAction(async (what: "mute" | "unmute", body: object) => {
    await send("POST", `/problems/${id}/${what}`, { body });
    toast(what === "mute" ? "Muted" : "The mute has ended");
    await loadProblems();
    onDone();
  });
  if (state === "resolved") return null;
  return (
    <>
      <FixChannel problem={problem} onDone={onDone} />
      <Acknowledge problem={problem} onDone={onDone} />
      {hasPermission("problems.write") && (
        <>
          {mutedUntil === null ? (
            MUTES.map(([label, forSeconds]) => (
              <Button
                key={label}
                disabled={call.isRunning}
                onClick={() => void call.run("mute", { forSeconds })}
              >
                Mute {label}
              </Button>
            ))
          ) : (
            <Button disabled={call.isRunning} onClick={() => void call.run("unmute", {})}>
              Unmute
            </Button>
          )}
          <Button onClick={() => setWriting(true)}>{note === null ? "Add a note" : "Change the note"}</Button>
        </>
      )}
      {call.error && <ErrorNote error={call.error} />}
      {isWriting && (
        <ResourceForm
          title="Note"
          method="put"
          operation="/problems/{problemId}"
          path={`/problems/${id}`}
          verb="Save"
          entity={{ note }}
          onClose={() => setWriting(false)}
          onDone={() => {
            setWriting(false);
            toast("Saved: note");
            onDone();
          }}
        />
      )}
    </>
  );
}

const SOURCE_KINDS: readonly string[] = ["polling", "sse"];

/** Link to the source of the affected channel, and a button that sets its connection if it needs one. */
function FixChannel({ problem: { app, channel }, onDone }: Props) {
  const [isOpen, setOpen] = useState(false);
  const canRead = app !== null && channel !== null && hasPermission("apps.read");
  const path = { appId: app?.id ?? "", channelId: channel?.uid ?? "" };
  const loaded = useLoad(
    (signal) =>
      canRead ? api.get("/apps/{appId}/channels/{channelId}", { path, signal }) : Promise.resolve(undefined),
    [path.appId, path.channelId],
  );
  const found = loaded.data;
  // The channel may have been deleted since, so an error is not shown.
  if (!found) return null;
  const source = viewHref("/sources", {}, { app: path.appId, channel: path.channelId });
  const needsConnection = found.state === "needsConnection" || found.state === "needsReauth";
  return (
    <>
      {needsConnection && hasPermission("apps.write") && hasPermission("connections.read") && (
        <Button look="primary" onClick={() => setOpen(true)}>
          Set connection
        </Button>
      )}
      {SOURCE_KINDS.includes(found.kind) && source !== undefined && (
        <a class="button" href={source}>
          Open source
        </a>
      )}
      {isOpen && (
        <SetConnection
          appId={path.appId}
          channel={found}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false);
            loaded.reload();
            onDone();
          }}
        />
      )}
    </>
  );
}
