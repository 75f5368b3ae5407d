/** The part of onnx.proto3 that we write, encoded with protobufjs. Field numbers are those of the ONNX specification (IR version 10). */
import protobuf from 'protobufjs';

const SCHEMA = `
syntax = "proto3";
package onnx;
message StringStringEntryProto { string key = 1; string value = 2; }
message TensorProto {
  repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9;
  repeated StringStringEntryProto external_data = 13; int32 data_location = 14;
}
message AttributeProto {
  string name = 1; float f = 2; int64 i = 3; bytes s = 4; TensorProto t = 5; GraphProto g = 6;
  repeated float floats = 7; repeated int64 ints = 8; int32 type = 20;
}
message NodeProto {
  repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4;
  repeated AttributeProto attribute = 5; string domain = 7;
}
message Dimension { oneof value { int64 dim_value = 1; string dim_param = 2; } }
message TensorShapeProto { repeated Dimension dim = 1; }
message TensorTypeProto { int32 elem_type = 1; TensorShapeProto shape = 2; }
message TypeProto { TensorTypeProto tensor_type = 1; }
message ValueInfoProto { string name = 1; TypeProto type = 2; }
message GraphProto {
  repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5;
  repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12;
}
message OperatorSetIdProto { string domain = 1; int64 version = 2; }
message ModelProto {
  int64 ir_version = 1; repeated OperatorSetIdProto opset_import = 8; string producer_name = 2; GraphProto graph = 7;
}`;

const ModelProto = protobuf.parse(SCHEMA, { keepCase: true }).root.lookupType('onnx.ModelProto');

/** TensorProto.DataType of each element type we use. */
export const DATA_TYPE = { float32: 1, int32: 6, int64: 7, bool: 9, float16: 10, bfloat16: 16 } as const;
export type DType = keyof typeof DATA_TYPE;

/** AttributeProto.AttributeType of each attribute kind we use. */
export const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;

export interface TensorMessage {
  name: string;
  dims: number[];
  data_type: number;
  raw_data?: Uint8Array;
  data_location?: number;
  external_data?: { key: string; value: string }[];
}
export interface AttributeMessage {
  name: string;
  type: number;
  f?: number;
  i?: number;
  s?: Uint8Array;
  g?: GraphMessage;
  ints?: number[];
}
export interface NodeMessage {
  op_type: string;
  domain: string;
  name: string;
  input: string[];
  output: string[];
  attribute: AttributeMessage[];
}
interface ValueInfoMessage {
  name: string;
  type: { tensor_type: { elem_type: number; shape: { dim: ({ dim_value: number } | { dim_param: string })[] } } };
}
export interface GraphMessage {
  name: string;
  node: NodeMessage[];
  initializer: TensorMessage[];
  input: ValueInfoMessage[];
  output: ValueInfoMessage[];
}

/** Opset 18: later versions have CUDA kernels missing for Loop, If and Identity. */
const OPSET = 18;

/** Serialise a graph as an ONNX model. */
export function encodeModel(graph: GraphMessage): Uint8Array {
  return ModelProto.encode(
    ModelProto.fromObject({
      ir_version: 10,
      producer_name: 'propel',
      opset_import: [
        { domain: '', version: OPSET },
        { domain: 'com.microsoft', version: 1 },
      ],
      graph,
    }),
  ).finish();
}
