import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { BLOCKS } from "./params.ts";

const MAX_ITEMS = 1_000;
const MAX_SECTIONS = 200;

/** Id of a part of a form, chosen by the form's author. It is unique only within the form. */
const localId = z.string().min(1).max(255);
const title = z.string().max(1_024).nullable().default(null);
const prose = z.string().max(16_384).nullable().default(null);

/** Whether a settings block is empty. Returns false for blocks with an unknown name, so that validation rejects them. */
const isEmptyBlock = ([name, block]: [string, unknown]): boolean =>
  Object.hasOwn(BLOCKS, name) && (block === null || isDeepStrictEqual(block, {}));

/** Removes empty settings blocks from `params`, except the block named after `kind`. */
const onlyOf = (kind: string, params: unknown): unknown =>
  typeof params === "object" && params !== null && !Array.isArray(params)
    ? Object.fromEntries(Object.entries(params).filter((entry) => entry[0] === kind || !isEmptyBlock(entry)))
    : params;

/** Schema of an input. `params` must contain the settings block named after the kind, and any other block must be empty. */
const inputOf = (kind: string, block: z.ZodType) =>
  z.strictObject({
    key: z.string().min(1).max(255).meta({ description: "The name of the answer. Unique within the form." }),
    title,
    description: prose,
    required: z.boolean().default(false),
    kind: z.literal(kind),
    params: z.preprocess((given) => onlyOf(kind, given), z.strictObject({ [kind]: block })),
  });

const [firstInput, ...otherInputs] = Object.entries(BLOCKS).map(([kind, block]) =>
  inputOf(kind, block),
) as unknown as readonly [InputSchema, ...InputSchema[]];

type InputSchema = ReturnType<typeof inputOf>;

const itemInput = z.discriminatedUnion("kind", [firstInput, ...otherInputs]).meta({
  id: "FormInput",
  description:
    "A question of a form. `params` holds the block named by the kind. Other blocks may be null or empty and are dropped.",
});

const formItem = z
  .strictObject({
    id: localId,
    kind: z
      .enum(["input", "heading", "text", "divider"])
      .meta({ description: "`input` asks a question. The other kinds only show their `content`." }),
    content: prose,
    sectionId: localId
      .nullable()
      .default(null)
      .meta({ description: "A section of this form. `null` if the item is in no section." }),
    input: itemInput
      .nullable()
      .default(null)
      .meta({ description: "Required for items of kind `input`, and not allowed for other kinds." }),
  })
  .superRefine(({ kind, input }, context) => {
    const problem =
      kind === "input"
        ? input === null && "is required for the kind input"
        : input !== null && "is only allowed for the kind input";
    if (problem) context.addIssue({ code: "custom", path: ["input"], message: problem });
  })
  .meta({ id: "FormItem", description: "A question or a static element of a form." });

const formSection = z
  .strictObject({ id: localId, title, description: prose })
  .meta({ id: "FormSection", description: "A group of items on a form." });

const items = z.array(formItem).max(MAX_ITEMS);
const sections = z.array(formSection).max(MAX_SECTIONS);

const EXAMPLE = {
  items: [
    {
      id: "1",
      kind: "input",
      content: null,
      sectionId: null,
      input: {
        key: "name",
        title: "Your name",
        description: null,
        required: true,
        kind: "text",
        params: { text: { long: false, minLength: 1, maxLength: 100, minWords: null, maxWords: null } },
      },
    },
  ],
  sections: [],
};

/** Content of a form. Items appear in the order of the array, grouped by section. */
export const formContent = z
  .strictObject({ items: items.default([]), sections: sections.default([]) })
  .superRefine((content, context) => {
    rejectRepeated(context, content.sections, "sections", ["id"], ({ id }) => id);
    rejectRepeated(context, content.items, "items", ["id"], ({ id }) => id);
    rejectRepeated(context, content.items, "items", ["input", "key"], ({ input }) => input?.key);
    const known = new Set(content.sections.map(({ id }) => id));
    for (const [index, { sectionId }] of content.items.entries()) {
      if (sectionId === null || known.has(sectionId)) continue;
      const path = ["items", index, "sectionId"];
      context.addIssue({ code: "custom", path, message: "must be the id of a section of this form" });
    }
  })
  .meta({ example: EXAMPLE });

function rejectRepeated<T>(
  context: z.RefinementCtx,
  list: readonly T[],
  name: string,
  field: readonly string[],
  pick: (one: T) => string | undefined,
): void {
  const seen = new Set<string>();
  for (const [index, one] of list.entries()) {
    const value = pick(one);
    if (value === undefined) continue;
    if (seen.has(value))
      context.addIssue({ code: "custom", path: [name, index, ...field], message: "is used twice" });
    seen.add(value);
  }
}
