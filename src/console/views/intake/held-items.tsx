import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { describeReason } from "../../kit/explained/reasons.ts";
import { type Batch, pathOf, redriveOf } from "../../kit/failures/batch.ts";
import { BatchDialog } from "../../kit/failures/batch-dialog.tsx";
import { FailurePanel } from "../../kit/failures/failure-panel.tsx";
import { Empty } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { choiceFilter, FilterBar, useFilters } from "../../kit/list/filters.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import { type Column, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { canRedrive, HELD_PANEL, loadHeld } from "./held-item.tsx";

type Held = Schemas["HeldRecord"];

const REASONS: readonly Held["reason"][] = [
  ...(["no_install", "no_route", "over_limit", "replayed"] as const),
  ...(["invalid_body", "paused", "signature_invalid"] as const),
];

const COLUMNS: readonly Column<Held>[] = [
  { title: "Reason", width: "10rem", cell: ({ reason }) => <Badge tone="warn">{reason}</Badge> },
  {
    title: "Detail",
    width: "minmax(0, 2fr)",
    cell: ({ reason, detail }) => (
      <span title={describeReason(reason).description}>
        <UntrustedText>{detail}</UntrustedText>
      </span>
    ),
  },
  { title: "Arrivals", width: "6rem", align: "end", priority: 2, cell: ({ count }) => formatCount(count) },
  { title: "Last", ...TIME_WIDTHS, cell: ({ lastAt }) => <Time at={lastAt} /> },
];

const FILTERS = [choiceFilter("reason", "Reason", REASONS)];

/** Table of the items that the intake holds, such as those of a customer whose install has no route key yet. */
export function HeldItems({ blueprintId }: { readonly blueprintId: string }) {
  const path = `/blueprints/${blueprintId}/quarantine`;
  const { values, set } = useFilters(["reason"]);
  const reason = REASONS.find((one) => one === values.reason);
  const [shown, setShown] = useState<Held>();
  const [isRedriving, setRedriving] = useState(false);
  const pages = usePages<Held>(path, { reason });
  const { count = 0, reload } = pages;
  return (
    <Section title="Quarantine">
      <FilterBar fields={FILTERS} values={values} onChange={set} />
      {reason !== undefined && canRedrive(reason) && count > 0 && hasPermission("blueprints.write") && (
        <div class="row">
          <Button onClick={() => setRedriving(true)}>Redrive all {formatCount(count)}</Button>
        </div>
      )}
      <div class="split">
        <div class="stack">
          <PagedTable
            label="Quarantine"
            columns={COLUMNS}
            pages={pages}
            keyOf={({ id }) => id}
            onOpen={setShown}
            openKey={shown?.id}
            maxRows={8}
            of="held items"
            lines={2}
            empty={
              <Empty title={reason === undefined ? "No held items" : "No held items with this reason"}>
                {reason === undefined &&
                  "Items without an install appear here, until an install gets their key."}
              </Empty>
            }
          />
        </div>
        {shown !== undefined && (
          <FailurePanel
            key={shown.id}
            spec={HELD_PANEL}
            path={pathOf(path, shown.id)}
            load={(signal) => loadHeld(pathOf(path, shown.id), shown, signal)}
            onClose={() => setShown(undefined)}
            onChanged={reload}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path: path + formatQuery({ reason }) }} />
      {isRedriving && reason !== undefined && (
        <BatchDialog
          batch={createRedrive(path, reason, count)}
          onClose={() => setRedriving(false)}
          onDone={reload}
        />
      )}
    </Section>
  );
}

const createRedrive = (collection: string, reason: Held["reason"], count: number): Batch => ({
  ...redriveOf({ collection, rows: [], count, scope: { reason } }),
  title: `Redrive ${formatCount(count)} held ${count === 1 ? "item" : "items"}`,
  verb: (text) => `Redrive ${text}`,
  words: { released: "released", kept: "still held" },
  preview: async () => ({
    content: (
      <p>
        Inlet routes the items with the reason <code>{reason}</code> again, by the current route key paths of
        the intake. An item is published if an install has its key. All others are still held.
      </p>
    ),
  }),
});
