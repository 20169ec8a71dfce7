import { api, send } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { ActionButton, DialogButton } from "../../kit/feedback/buttons.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
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
  const { id, state, mutedUntil, note } = problem;
  if (state === "resolved") return null;
  const mute = async (forSeconds?: number): Promise<void> => {
    const isMute = forSeconds !== undefined;
    await send("POST", `/problems/${id}/${isMute ? "mute" : "unmute"}`, { body: { forSeconds } });
    toast(isMute ? "Muted" : "The mute has ended");
    await loadProblems();
    onDone();
  };
  return (
    <>
      <FixChannel problem={problem} onDone={onDone} />
      <Acknowledge problem={problem} onDone={onDone} />
      {hasPermission("problems.write") && (
        <>
          {mutedUntil === null ? (
            MUTES.map(([label, forSeconds]) => (
              <ActionButton key={label} act={() => mute(forSeconds)}>
                Mute {label}
              </ActionButton>
            ))
          ) : (
            <ActionButton act={() => mute()}>Unmute</ActionButton>
          )}
          <DialogButton label={note === null ? "Add a note" : "Change the note"}>
            {(onClose) => (
              <ResourceForm
                title="Note"
                method="put"
                operation="/problems/{problemId}"
                path={`/problems/${id}`}
                verb="Save"
                entity={{ note }}
                onClose={onClose}
                onDone={() => {
                  onClose();
                  toast("Saved: note");
                  onDone();
                }}
              />
            )}
          </DialogButton>
        </>
      )}
    </>
  );
}

const SOURCE_KINDS: readonly string[] = ["polling", "sse"];

/** Link to the source of the affected channel, and a button that sets its connection if it needs one. */
function FixChannel({ problem: { app, channel }, onDone }: Props) {
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
        <DialogButton look="primary" label="Set connection">
          {(onClose) => (
            <SetConnection
              channel={found}
              onClose={onClose}
              onDone={() => {
                onClose();
                loaded.reload();
                onDone();
              }}
            />
          )}
        </DialogButton>
      )}
      {SOURCE_KINDS.includes(found.kind) && source !== undefined && (
        <a class="button" href={source}>
          Open source
        </a>
      )}
    </>
  );
}
