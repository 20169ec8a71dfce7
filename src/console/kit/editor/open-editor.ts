import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import {
  bracketMatching,
  foldGutter,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from "@codemirror/language";
import { type Diagnostic, linter, lintGutter, lintKeymap } from "@codemirror/lint";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { ErrorDetail } from "../../api/api-error.ts";
import { findJsonPath } from "./find-json-path.ts";

export interface OpenedEditor {
  /** Marks the values to which the paths of the errors point, and shows the messages there. */
  readonly showErrors: (details: readonly ErrorDetail[]) => void;
  readonly close: () => void;
}

interface Options {
  readonly text: string;
  readonly label: string;
  readonly onChange: (text: string) => void;
}

const setErrors = StateEffect.define<readonly ErrorDetail[]>();
const shownErrors = StateField.define<readonly ErrorDetail[]>({
  create: () => [],
  update: (errors, { effects }) =>
    effects.reduce((before, effect) => (effect.is(setErrors) ? effect.value : before), errors),
});

const errorLinter = linter(
  ({ state }): readonly Diagnostic[] =>
    state.field(shownErrors).map(({ path, message }) => ({
      ...findJsonPath(state, path),
      severity: "error",
      message,
    })),
  {
    needsRefresh: ({ transactions }) =>
      transactions.some(({ effects }) => effects.some((effect) => effect.is(setErrors))),
  },
);

/** The colors are CSS custom properties of the page, which also apply in the editor's shadow root. */
const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground-sunken)", fontSize: "12.5px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", maxHeight: "60vh" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--ground-sunken)",
    color: "var(--text-faint)",
    borderRight: "1px solid var(--line)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--ground-hover)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--ground-chosen) !important",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--ground-raised)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)",
  },
});

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--ok)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
]);

/**
 * Opens the editor in a shadow root, where the editor library uses constructed style sheets. Elsewhere, it uses style
 * elements, which the content security policy blocks.
 */
export function openEditor(place: HTMLElement, { text, label, onChange }: Options): OpenedEditor {
  const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        foldGutter(),
        history(),
        indentOnInput(),
        bracketMatching(),
        highlightActiveLine(),
        json(),
        linter(jsonParseLinter()),
        shownErrors,
        errorLinter,
        lintGutter(),
        // Tab is not bound, so that keyboard users can leave the editor.
        keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange(state.doc.toString());
        }),
        theme,
        syntaxHighlighting(colors),
      ],
    }),
  });
  return {
    showErrors: (details) => view.dispatch({ effects: setErrors.of(details) }),
    close: () => view.destroy(),
  };
}
