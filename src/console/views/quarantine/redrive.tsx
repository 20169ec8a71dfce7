import { type Schemas, send } from "../../api/client.ts";
import { type Batch, redriveOf, type Target, withRateLimitRetry } from "../../kit/failures/batch.ts";
import { Tally } from "../../kit/failures/batch-dialog.tsx";
import { formatCount } from "../../kit/text/numbers.ts";

type QuarantineRecord = Schemas["QuarantineRecord"];
type PreviewedItem = Schemas["QuarantinePreview"]["items"][number];
/** An item to redrive. The preview examines fewer items if it knows their reason and time. */
type Item = Pick<QuarantineRecord, "id" | "channelUid"> &
  Partial<Pick<QuarantineRecord, "reason" | "firstAt">>;

/** Maximum number of items per channel that a preview examines. */
const EXAMINED = 200;

/** Redrive of quarantined items, with a preview of its result with the current definitions. */
export const createRedrive = (target: Target<Item>): Batch => ({
  ...redriveOf(target),
  title: `Redrive ${target.count === 1 ? "one item" : `${formatCount(target.count)} items`}`,
  verb: (count) => `Redrive ${count}`,
  words: { released: "released", kept: "stay in quarantine" },
  preview: async (signal) => ({
    content: <Preview items={await previewItems(target, signal)} of={target.count} />,
  }),
});

async function previewItems(
  { collection, rows, scope }: Target<Item>,
  signal: AbortSignal,
): Promise<readonly PreviewedItem[]> {
  const ids = new Set(rows.map(({ id }) => id));
  const found: PreviewedItem[] = [];
  for (const [channelId, items] of Map.groupBy(rows, ({ channelUid }) => channelUid)) {
    const reasons = new Set(items.map(({ reason }) => reason));
    const filters = scope ?? {
      ...(reasons.size === 1 && { reason: items[0]?.reason }),
      from: items.at(-1)?.firstAt,
    };
    const body = { ...filters, channelId, limit: EXAMINED };
    const preview = await withRateLimitRetry(signal, () =>
      send<Schemas["QuarantinePreview"]>("POST", `${collection}/preview`, { body, signal }),
    );
    found.push(...preview.items.filter(({ id }) => scope !== undefined || ids.has(id)));
  }
  return found;
}

interface PreviewProps {
  readonly items: readonly PreviewedItem[];
  readonly of: number;
}

function Preview({ items, of }: PreviewProps) {
  const staying = items.filter(({ isReleased }) => !isReleased);
  const released = items.length - staying.length;
  const reasons = [...Map.groupBy(staying, reasonNow)].sort(([, a], [, b]) => b.length - a.length);
  if (items.length === 0) {
    return (
      <p class="note warn">
        The preview did not find these items, because it examines at most {EXAMINED} items per channel, or
        because they are gone.
      </p>
    );
  }
  return (
    <>
      <Tally
        results={[
          ["would leave quarantine", released, "ok"],
          ["would stay", staying.length, ""],
        ]}
      />
      {reasons.length > 0 && (
        <p class="soft">
          Reasons:{" "}
          {reasons.map(([reason, { length }], index) => (
            <span key={reason}>
              {index > 0 && ", "}
              {formatCount(length)} for <code>{reason}</code>
            </span>
          ))}
          .
        </p>
      )}
      {released === 0 && (
        <p class="note warn">
          {items.length < of ? "No examined item" : "No item"} would be released. Fix the definitions first.
        </p>
      )}
      <p class="faint">
        The preview uses the current definitions
        {items.length < of && `, for the first ${formatCount(items.length)} of ${formatCount(of)} items`}. A
        redrive runs in order of arrival, and publishes each event once.
      </p>
    </>
  );
}

/** Returns the reason why the item would stay in quarantine. Without a new reason, returns the stored one. */
const reasonNow = ({ explanation, reason }: PreviewedItem): string =>
  explanation.flatMap(({ failures }) => failures)[0]?.reason ??
  (explanation.some(({ events }) => events.some(({ status }) => status === "conflict"))
    ? "id_conflict"
    : reason);
