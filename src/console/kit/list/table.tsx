import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatCount } from "../text/numbers.ts";
import { toShown } from "../text/untrusted-text.tsx";

export interface Column<Row> {
  readonly title: string;
  /** Whether the title is visible to screen readers only, as for columns of checkboxes and icons. */
  readonly hidesTitle?: boolean;
  /** Content of a cell. A text is shown as untrusted text. */
  readonly cell: (row: Row) => ComponentChildren;
  /** Width as a CSS grid track: `minmax(8rem, 2fr)`. Default: `minmax(0, 1fr)`. */
  readonly width?: string;
  /** Width in narrow lists. Default: `width`. */
  readonly narrowWidth?: string;
  readonly align?: "end";
  /** Importance of the column. 1 (default) is always visible, 2 is hidden in narrow lists, and 3 is visible only in wide lists. */
  readonly priority?: 1 | 2 | 3;
}

/** Widths of a column of `Time` elements. */
export const TIME_WIDTHS = { width: "11.5rem", narrowWidth: "6rem" } as const;

/** Rows of a list that may be loaded in part. */
interface LazyRows<Row> {
  /** Total number of rows. It includes rows that are not loaded. */
  readonly count: number | undefined;
  /** Returns the row at an index, or `undefined` if the row is not loaded yet. */
  readonly rowAt: (index: number) => Row | undefined;
  /** Called with the range of visible rows, so that these rows can be loaded. */
  readonly onRange?: (first: number, last: number) => void;
}

export interface TableProps<Row> {
  /** Plural name of the rows: `Events`. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[] | LazyRows<Row>;
  readonly keyOf: (row: Row) => string;
  /** Called on Enter or a click. */
  readonly onOpen?: (row: Row) => void;
  /** Key of the row whose details are open in the panel. */
  readonly openKey?: string | undefined;
  /** Maximum height in rows. Default: the rest of the page. */
  readonly maxRows?: number;
}

/** Same as `--row` in the styles. */
const ROW_PX = 32;
const OVERSCAN_ROWS = 12;
/** Maximum number of rendered rows. It applies even if the window has room for more. */
const MAX_RENDERED = 200;

/**
 * Table that renders only its visible rows, so that it can have any length. The arrow keys, Page Up, Page Down, Home
 * and End move the focus. Enter opens the row.
 */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows: given, keyOf, onOpen, openKey, maxRows } = props;
  const {
    count = 0,
    rowAt,
    onRange,
  }: LazyRows<Row> = "rowAt" in given ? given : { count: given.length, rowAt: (index) => given[index] };
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [heightPx, setHeightPx] = useState(600);
  const [focusedIndex, setFocusedIndex] = useState(0);
  const movesFocus = useRef(false);

  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return undefined;
    const measure = (): void => setHeightPx(current.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);

  const visibleRows = Math.ceil(heightPx / ROW_PX);
  const first = Math.max(0, Math.min(Math.floor(top / ROW_PX) - OVERSCAN_ROWS, count - visibleRows));
  const last = Math.min(count, first + Math.min(MAX_RENDERED, visibleRows + 2 * OVERSCAN_ROWS));
  useEffect(() => onRange?.(first, last), [first, last, onRange]);

  const current = Math.min(focusedIndex, Math.max(0, count - 1));
  useEffect(() => {
    if (!movesFocus.current) return;
    const row = box.current?.querySelector<HTMLElement>(`[data-index="${current}"]`);
    // Try again after the next render, because the row is rendered only after the list has scrolled to it.
    if (!row) return;
    movesFocus.current = false;
    row.focus({ preventScroll: true });
  });

  function moveTo(index: number): void {
    const next = Math.max(0, Math.min(count - 1, index));
    setFocusedIndex(next);
    movesFocus.current = true;
    const { current: scroller } = box;
    if (!scroller) return;
    const head = ROW_PX;
    if (next * ROW_PX < scroller.scrollTop) scroller.scrollTop = next * ROW_PX;
    else if ((next + 1) * ROW_PX + head > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = (next + 1) * ROW_PX + head - scroller.clientHeight;
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.target instanceof HTMLElement && event.target.closest("a, button, input, select")) {
      if (event.key === "Enter" || event.key === " ") return;
    }
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      j: current + 1,
      k: current - 1,
      PageDown: current + visibleRows - 1,
      PageUp: current - visibleRows + 1,
      Home: 0,
      End: count - 1,
    };
    const next = steps[event.key];
    if (next !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      moveTo(next);
    } else if (event.key === "Enter") {
      const row = rowAt(current);
      if (row === undefined || onOpen === undefined) return;
      // `onOpen` may close a dialog, which moves the focus to a button. Without this, the same key press would then click that button.
      event.preventDefault();
      onOpen(row);
    }
  }

  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  const bodyPx = count * ROW_PX;
  const style = {
    "--columns": tracks(columns, 3),
    "--columns-2": tracks(columns, 2),
    "--columns-1": tracks(columns, 1),
    ...(maxRows === undefined ? {} : { maxHeight: `${(maxRows + 1) * ROW_PX + 2}px` }),
  };
  return (
    <div
      ref={box}
      class={maxRows === undefined ? "table tall" : "table"}
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      tabIndex={count === 0 ? 0 : -1}
      style={style}
      onScroll={() => setTop(box.current?.scrollTop ?? 0)}
      onKeyDown={onKeyDown}
    >
      {/* biome-ignore lint/a11y/useFocusableInteractive: the rows are focusable instead */}
      <div class="table-head" role="row" aria-rowindex={1}>
        {columns.map(({ title, hidesTitle = false, align, priority = 1 }) => (
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <div key={title} role="columnheader" class={cellClass(align, priority)}>
            {hidesTitle ? <span class="sr-only">{title}</span> : title}
          </div>
        ))}
      </div>
      <div class="table-body" role="presentation" style={{ height: `${bodyPx}px` }}>
        {rows.map((index) => {
          const row = rowAt(index);
          const isOpen = row !== undefined && openKey !== undefined && keyOf(row) === openKey;
          return (
            <div
              key={index}
              class={row === undefined ? "table-row waiting" : onOpen ? "table-row opens" : "table-row"}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={isOpen}
              data-index={index}
              tabIndex={index === current ? 0 : -1}
              style={{ transform: `translateY(${index * ROW_PX}px)` }}
              onFocus={() => setFocusedIndex(index)}
              onClick={(event) => {
                if (
                  event.target instanceof HTMLElement &&
                  event.target.closest("a, button, input, select, summary")
                )
                  return;
                // Ignore a click that ends a text selection, so that users can select text in rows.
                if (row !== undefined && (getSelection()?.isCollapsed ?? true)) onOpen?.(row);
              }}
              onKeyDown={undefined}
            >
              {columns.map(({ title, cell, align, priority = 1 }) => (
                // biome-ignore lint/a11y/useFocusableInteractive: as above
                <div key={title} role="gridcell" class={cellClass(align, priority)}>
                  {row === undefined ? <span class="waiting-cell" /> : toShown(cell(row))}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const tracks = <Row,>(columns: readonly Column<Row>[], upTo: number): string =>
  columns
    .filter(({ priority = 1 }) => priority <= upTo)
    .map(({ width = "minmax(0, 1fr)", narrowWidth = width }) => (upTo === 1 ? narrowWidth : width))
    .join(" ");

const cellClass = (align: "end" | undefined, priority: number): string =>
  ["cell", align === "end" ? "end" : "", priority > 1 ? `priority-${priority}` : ""]
    .filter(Boolean)
    .join(" ");

/** `of` is the plural name of the rows. */
export const CountLine = ({ count, of }: { readonly count: number; readonly of: string }) => (
  <p class="count-line">
    {formatCount(count)} {count === 1 ? of.replace(/ies$/, "y").replace(/s$/, "") : of}
  </p>
);
