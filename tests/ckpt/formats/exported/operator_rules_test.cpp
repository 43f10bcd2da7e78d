// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/operator_rules.h"

#include <gtest/gtest.h>

namespace lockstep::ckpt {
namespace {

TEST(OperatorRules, KnowWhatPythonLooksUp) {
  for (const char* target :
       {"torch.ops.aten.conv2d.default",
        "torch.ops.aten.sym_size.int",
        "torch.ops.aten._assert_scalar.default",
        "torch.ops.aten.lstm.input",
        "torch.ops.aten.__and__.Tensor",
        "torch.ops.aten.__irshift__.Scalar",
        "torch.ops.higher_order.cond",
        "torch.ops.prims.convert_element_type.default",
        "_operator.floordiv",
        "math.trunc",
        "torch.sym_max",
        "torch._functorch.predispatch._vmap_increment_nesting"}) {
    EXPECT_EQ(judge_target(target), TargetKind::kKnown) << target;
  }
  for (const char* target :
       {"torch.ops.mine.twice.default",
        "torch.ops.aten._cummax_helper.default",
        "torch.ops.aten.nll_loss_backward.default",
        "torch.ops.torchvision.nms.default",
        "torch.ops.higher_order.triton_kernel_wrapper_mutation",
        "#ext:mine",
        "relu",
        ""}) {
    EXPECT_EQ(judge_target(target), TargetKind::kForeign) << target;
  }
  for (const char* target :
       {"torch.ops.aten.from_file.default",
        "torch.ops.aten._index_put_impl_.default",
        "torch.ops.aten.set_.source_Storage",
        "torch.ops.aten.lstm.data",
        "torch.ops.aten.gru.data",
        "torch.ops.aten.rnn_tanh.data",
        "torch.ops.aten.rnn_relu.data",
        "torch.ops.aten.sparse_bsr_tensor.crow_col_value",
        "torch.ops.aten.sparse_csc_tensor.ccol_row_value",
        "torch.ops.aten.sparse_bsc_tensor.ccol_row_value",
        "torch.ops.aten.sparse_compressed_tensor.comp_plain_value",
        "torch.ops.aten.sparse_csr_tensor.crow_col_value",
        "torch.ops.load_library",
        "torch.ops.aten.__class__.Tensor",
        "torch.__and__",
        "torch.ops.__and__.add.Tensor.name",
        "torch.ops.aten.add.Tensor.__class__",
        "torch.ops.aten.add.Tensor.name.real",
        "torch.os.system",
        "torch.load",
        "torch.sym_max.__globals__",
        "torch._functorch.predispatch.torch.os.system",
        "_operator.methodcaller",
        "_operatorx.attrgetter",
        "math.__loader__",
        "torch..os",
        "mathx.pow.x"}) {
    EXPECT_EQ(judge_target(target), TargetKind::kDangerous) << target;
  }
}

TEST(OperatorRules, PartANameAsSchemasDo) {
  const OperatorName parts = operator_name("torch.ops.aten.add.Tensor");
  EXPECT_EQ(parts.space, "aten");
  EXPECT_EQ(parts.name, "add");
  EXPECT_EQ(parts.overload, "Tensor");
  EXPECT_EQ(operator_name("torch.ops.higher_order.cond").space, "");
  EXPECT_EQ(operator_name("_operator.add").space, "");
}

TEST(PlainExpression, IsWhatSympyPrints) {
  for (const char* text :
       {"Symbol('s77', positive=True, integer=True)",
        "Add(Mod(Symbol('s77', integer=True), Integer(3)), Integer(1))",
        "Mul(Integer(2), Pow(Symbol('s0'), Integer(-1)))",
        "2*s0 + 1",
        "Max(1, s0 // 2)",
        "Piecewise((1, s0 < 2), (Float('0.5', precision=53), True))",
        "oo",
        "-int_oo",
        "true",
        "(s7 > 1) & (s7 < 3)",
        "u0 == 3",
        "And(StrictGreaterThan(Symbol('s7', integer=True), Integer(1)), true)",
        "OpaqueUnaryFn_log2(Symbol('zf1', real=True))",
        "BitwiseFn_bitwise_and(s0, s1 + 1)",
        "(s77//2)*(s4 - 1) != 0",
        "1.5e-05"}) {
    EXPECT_TRUE(is_plain_expression(text)) << text;
  }
  for (const char* text :
       {"__import__('os').system('true')",
        "eval('1')",
        "Symbol('s0').subs",
        "1.0.__class__",
        "1.real.x()",
        "1 .real",
        "Symbol('s0', cls=Lambda(x, exit()))",
        "[c for c in ().__class__.__base__.__subclasses__()]",
        "Integer(1) if exec('1') else 2",
        "lambda: 1",
        "Symbol('a\\x27')",
        "Symbol('a",
        "sympify('1')",
        "s0\n+1",
        "(exec)('import os')",
        "(open)('x','w')",
        "[exec][0]('import os')",
        "(max)(['import os'], key=exec)",
        "max(['import os'], key=exec)",
        "Max('import os', key=exec)",
        "Max(exec, 1)",
        "Max('exec')",
        "exec",
        "key=exec",
        "Symbol('s0', real=exec)",
        "Symbol('s0', positive=True)('x')",
        "(s0)(1)",
        "(s0) (1)",
        "Max(s0, 1)[0]",
        "Symbol('s0')[0]",
        "'x'(1)",
        "1(2)",
        "s0 and (exec)('1')",
        "s0 if s1 else s2",
        "(s0",
        "s0)",
        "E1",
        "s0 = 1",
        "{1}"}) {
    EXPECT_FALSE(is_plain_expression(text)) << text;
  }
}

TEST(PlainGuard, IsAConditionBetweenSizes) {
  for (const char* text :
       {"2*(L['x'].size()[0] // 2) <= L['x'].size()[0]",
        "L['y']['k'].size()[0] > 3",
        "(1 + (L['x'].size()[0] % L['args'][0].size()[0])) != 1",
        "math.trunc(L['x'].size()[0] / 2) == 4",
        "not (L['x'].stride()[1] == 1) and L['x'].storage_offset() == 0",
        "((L['x'].size()[1]*L['x'].size()[0]) // 2) != L['x'].size()[0]",
        "max(1, L['x'].size()[0]) >= 1 or (u0 == 1)",
        "L['mode'] == 'fast' and L['flag'] == True",
        "torch.sym_float(L['x'].size()[0]) / 2 < torch._sym_sqrt(9)",
        "L['x'].size()[0] < math.inf",
        "(1 if L['x'].size()[0] > 3 else 2) == 1",
        "L['x']['it'].size()[0] == L['x']['a/b'].size()[0]",
        "x > 0"}) {
    EXPECT_TRUE(is_plain_guard(text)) << text;
  }
  for (const char* text :
       {"__import__('os').system('true') == 0",
        "torch.os.system('true')",
        "torch.load('x')",
        "torch._sym_sqrt",
        "math.inf('a')",
        "math.inf.x",
        "1 if (exec)('a') else 2",
        "L[\"x\\\"]\"].size()",
        R"(L["+str(__import__('os').system('id'))+"] == 0)",
        R"(1 == 1 or L["+str(open('x'))+"] == 0)",
        R"(1 == 1 or L['"+str(open)+"'] == 0)",
        R"(L["x"].size()[0] == 1)",
        R"(L['x']["it's"].size()[0] == 1)",
        "math.__loader__.load_module('os')",
        "math._x()",
        "L['x'].__class__",
        "L['x'].tofile('/tmp/x')",
        R"(L["x"].size()[0] + ")",
        "open('x')",
        "L['x\\'].size()",
        "(exec)('import os')",
        "(open)('x','w') == 0",
        "[exec][0]('import os')",
        "max(['import os'], key=exec)",
        "max(L, key=exec)",
        "L['x']('import os')",
        "L[exec]",
        "L['x'].size()[0]('a')",
        "L['x'].size()('a')",
        "math.trunc(1)('a')",
        "math.trunc(1).size()",
        "(L['x']).size()",
        "'a'.size()",
        "['a'][0]",
        "exec == 1",
        "torch > 0",
        "True) or (exec",
        "True) or (True",
        "x := 1"}) {
    EXPECT_FALSE(is_plain_guard(text)) << text;
  }
}

} // namespace
} // namespace lockstep::ckpt
