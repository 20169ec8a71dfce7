import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import type { ShownCall } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { RunDialog } from "../../kit/feedback/run-dialog.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import type { Scope } from "./records.ts";
import { type Counts, countOf, createAppCalls, NO_COUNTS, runAgain, type Target } from "./run-again.ts";

interface Props {
  readonly appId: string;
  /** Description of the items to process again, such as `3 items`. */
  readonly what: string;
  readonly target: Target;
  /** Items to preview, one entry for each channel. */
  readonly previewParts: readonly PreviewPart[];
  readonly onClose: () => void;
  /** Called when at least one item has left quarantine. */
  readonly onDone: () => void;
}

export interface PreviewPart {
  readonly scope: Scope & { readonly channelId: string };
  /** `undefined` for all items. */
  readonly ids?: ReadonlySet<string>;
}

export function RedriveDialog({ appId, what, target, previewParts, onClose, onDone }: Props) {
  const [counts, setCounts] = useState<Counts>();
  const count = countOf(target);
  return (
    <RunDialog
      title={`Redrive ${what}`}
      call={callOf(appId, target)}
      verb={`Redrive ${formatCount(count)}`}
      run={async (signal) => {
        setCounts(NO_COUNTS);
        const done = await runAgain(createAppCalls(appId), target, { signal, onProgress: setCounts });
        return `${done.released} released, ${done.kept} still in quarantine`;
      }}
      onDone={onDone}
      onClose={onClose}
    >
      {(isDone) =>
        counts === undefined ? (
          <Preview appId={appId} previewParts={previewParts} count={count} />
        ) : (
          <Outcome counts={counts} of={count} isDone={isDone} />
        )
      }
    </RunDialog>
  );
}

function callOf(appId: string, target: Target): ShownCall {
  const path = `/apps/${encodeURIComponent(appId)}/quarantine`;
  if (target.is === "scope")
    return { method: "POST", path: `${path}/redrive`, body: { ...target.scope, limit: 200 } };
  return { method: "POST", path: `${path}/${encodeURIComponent(target.ids[0] ?? "")}/redrive`, body: {} };
}

const LOOKED = 200;
type PreviewedItem = Schemas["QuarantinePreview"]["items"][number];

interface Previewed {
  readonly examined: number;
  readonly released: number;
  readonly staying: readonly (readonly [reason: string, count: number])[];
}

interface PreviewProps {
  readonly appId: string;
  readonly previewParts: readonly PreviewPart[];
  readonly count: number;
}

function Preview({ appId, previewParts, count }: PreviewProps) {
  const loaded = useLoad<Previewed>(
    async (signal) => {
      const items: PreviewedItem[] = [];
      for (const { scope, ids } of previewParts) {
        const found = await api.post("/apps/{appId}/quarantine/preview", {
          path: { appId },
          body: { ...scope, limit: LOOKED },
          signal,
        });
        items.push(...found.items.filter(({ id }) => ids?.has(id) ?? true));
      }
      const staying = new Map<string, number>();
      for (const item of items) {
        if (!item.isReleased) staying.set(reasonNow(item), (staying.get(reasonNow(item)) ?? 0) + 1);
      }
      return {
        examined: items.length,
        released: items.filter(({ isReleased }) => isReleased).length,
        staying: [...staying].sort(([, a], [, b]) => b - a),
      };
    },
    [appId],
  );
  return (
    <WhenLoaded loaded={loaded} lines={2}>
      {({ examined, released, staying }) => (
        <div class="stack" role="status">
          <dl class="tally">
            <div>
              <dt>would leave quarantine</dt>
              <dd class={released > 0 ? "ok" : ""}>{formatCount(released)}</dd>
            </div>
            <div>
              <dt>would stay</dt>
              <dd>{formatCount(examined - released)}</dd>
            </div>
          </dl>
          {staying.length > 0 && (
            <p class="soft">
              Reasons:{" "}
              {staying.map(([reason, n], index) => (
                <span key={reason}>
                  {index > 0 && ", "}
                  {formatCount(n)} for <code>{reason}</code>
                </span>
              ))}
              .
            </p>
          )}
          <p class="faint">
            With the current definitions
            {examined < count && `, of the first ${formatCount(examined)} of ${formatCount(count)}`}. This is
            a preview. A redrive runs in order of arrival and publishes each event once.
          </p>
        </div>
      )}
    </WhenLoaded>
  );
}

/** Returns the reason why the item would stay in quarantine. Without a new reason, returns the stored one. */
const reasonNow = ({ explanation, reason }: PreviewedItem): string =>
  explanation.flatMap(({ failures }) => failures)[0]?.reason ??
  (explanation.some(({ events }) => events.some(({ status }) => status === "conflict"))
    ? "id_conflict"
    : reason);

interface OutcomeProps {
  readonly counts: Counts;
  readonly of: number;
  readonly isDone: boolean;
}

/** Progress and result of a redrive. */
export function Outcome({ counts, of, isDone }: OutcomeProps) {
  const { released, kept, refused, unavailable } = counts;
  const done = released + kept + refused + unavailable;
  return (
    <div class="stack">
      <progress max={Math.max(of, done)} value={done} aria-label="Redrive progress" />
      <dl class="tally">
        {(
          [
            ["released", released, "ok"],
            ["stay in quarantine", kept, ""],
            ["rejected", refused, "bad"],
            ["unknown", unavailable, "bad"],
          ] as const
        )
          .filter(([, n], index) => n > 0 || index < 2)
          .map(([name, n, tone]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class={n > 0 ? tone : ""}>{formatCount(n)}</dd>
            </div>
          ))}
      </dl>
      {isDone && unavailable > 0 && (
        <p class="note warn">
          Redis did not respond, so the result of these items is unknown. You can safely redrive them again.
        </p>
      )}
      {isDone && done < of && unavailable === 0 && (
        <p class="soft">Stopped, or the other items left quarantine in the meantime.</p>
      )}
    </div>
  );
}
