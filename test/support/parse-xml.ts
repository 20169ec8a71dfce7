import { type ParseXmlElsewhere, parseXml } from "../../src/normalize/body/xml.ts";

/** On this thread. */
export const parseXmlHere: ParseXmlElsewhere = async (text) => parseXml(text);
