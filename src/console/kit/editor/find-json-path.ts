import { syntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";

interface Range {
  readonly from: number;
  readonly to: number;
}

type Node = ReturnType<typeof syntaxTree>["topNode"];

const VALUES = new Set(["Object", "Array", "String", "Number", "True", "False", "Null"]);

/**
 * Returns the place of a path such as `[0].typePath` in a JSON text. If the text has no such value, returns the place of the closest
 * value that contains it.
 */
export function findJsonPath(state: EditorState, path: string): Range {
  let found: Node = listValues(syntaxTree(state).topNode)[0] ?? syntaxTree(state).topNode;
  for (const [, index, name = ""] of path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)) {
    const next = index === undefined ? findProperty(state, found, name) : listValues(found)[Number(index)];
    if (next === undefined) break;
    found = next;
  }
  // An object can have many lines. Its first line is enough to find it.
  return { from: found.from, to: Math.min(found.to, state.doc.lineAt(found.from).to) };
}

function listValues(node: Node): readonly Node[] {
  const values: Node[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling)
    if (VALUES.has(child.name)) values.push(child);
  return values;
}

function findProperty(state: EditorState, object: Node, name: string): Node | undefined {
  for (const property of object.getChildren("Property")) {
    const key = property.getChild("PropertyName");
    if (key && JSON.parse(state.sliceDoc(key.from, key.to)) === name) return listValues(property)[0];
  }
  return undefined;
}
